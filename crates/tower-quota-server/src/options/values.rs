//! Values of flags, with errors that say the fix.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

/// Reads an address with a port. Without an address, such as `:9090`, every address of the machine is meant.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let address = match text.strip_prefix(':') {
        Some(port) => port
            .parse()
            .map(|port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
            .ok(),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| "write an IP address and a port, such as 127.0.0.1:8080".into())
}

pub(super) fn host(text: &str) -> Result<IpAddr, String> {
    let address = text.parse();
    address.map_err(|_| "write an IP address, such as 127.0.0.1, or 0.0.0.0 for all".into())
}

/// Reads a time span of at least a millisecond, as a deadline of 0 refuses everything.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let span = delay(text)?;
    match span < Duration::from_millis(1) {
        true => Err("write a time of at least 1ms".into()),
        false => Ok(span),
    }
}

pub(super) fn delay(text: &str) -> Result<Duration, String> {
    // envoyproxy/ratelimit takes 0 without a unit.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let span = text.parse::<tower_quota_rules::DurationText>();
    span.map(Duration::from).map_err(|error| error.to_string())
}
