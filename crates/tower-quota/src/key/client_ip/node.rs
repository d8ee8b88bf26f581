//! Addresses as proxies write them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How an IPv6 address may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6 {
    /// In brackets, or without them if no port follows.
    Bare,
    /// In brackets only.
    Bracketed,
}

/// The address in `192.0.2.1`, `192.0.2.1:443`, `[2001:db8::1]`, `[2001:db8::1]:443` and perhaps `2001:db8::1`; never a
/// mapped one. Nothing else is an address: no names, no leading zeros, no zone such as `fe80::1%eth0`, which means
/// something only to the machine that wrote it.
pub(super) fn node(text: &[u8], ipv6: Ipv6) -> Option<IpAddr> {
    let text = core::str::from_utf8(text).ok()?.trim_matches([' ', '\t']);
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        address.parse::<Ipv6Addr>().ok()?.into()
    } else {
        match text.split_once(':') {
            None => text.parse::<Ipv4Addr>().ok()?.into(),
            Some((address, port)) if is_port(port) && !address.is_empty() => address.parse::<Ipv4Addr>().ok()?.into(),
            Some(_) if ipv6 == Ipv6::Bare => text.parse::<Ipv6Addr>().ok()?.into(),
            Some(_) => return None,
        }
    };
    Some(IpAddr::to_canonical(&address))
}

/// A port, or one that was made unrecognisable on purpose: `node-port` of RFC 7239, section 6.
fn is_port(text: &str) -> bool {
    match text.as_bytes() {
        [b'_', hidden @ ..] => {
            !hidden.is_empty() && hidden.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
        }
        digits => matches!(digits.len(), 1..=5) && digits.iter().all(u8::is_ascii_digit),
    }
}
