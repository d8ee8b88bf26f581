//! Conditions on the client's address.

use super::error::sound;
use super::networks::Networks;
use super::{Condition, PatternError};
use crate::head::RequestHead;
use crate::key::ClientIp;

/// Holds of requests from clients whose address is in one of these networks: `203.0.113.0/24`, `2001:db8::/32`, or single
/// addresses. The address is the one that the extractor finds; a request without one is in no network. Lists of many
/// thousands are no slower to ask than short ones.
///
/// Bits beyond the prefix make no difference. IPv4 addresses that are written as IPv6, `::ffff:203.0.113.7`, are IPv4
/// addresses; no IPv6 network contains them, not even `::/0`.
///
/// ```
/// use tower_quota::{Policy, key, when};
///
/// // Our own monitoring is never refused.
/// let policy = Policy::new().allow(when::address_in(key::client_ip(), ["10.20.0.0/16", "192.0.2.44"]));
/// # let _ = policy;
/// ```
///
/// # Panics
/// When one of them is not a network; see [`try_address_in`].
#[must_use]
#[track_caller]
pub fn address_in<T: AsRef<str>>(client: ClientIp, networks: impl IntoIterator<Item = T>) -> Box<dyn Condition> {
    sound(try_address_in(client, networks))
}

/// [`address_in`] for networks that were not written in code.
///
/// # Errors
/// [`PatternError::Network`] with the first text that is neither an address nor a network.
pub fn try_address_in<T: AsRef<str>>(
    client: ClientIp,
    networks: impl IntoIterator<Item = T>,
) -> Result<Box<dyn Condition>, PatternError> {
    let networks = Networks::parse(networks)?;
    Ok(Box::new(move |head: &RequestHead<'_>| client.address(head).is_some_and(|address| networks.contain(address))))
}
