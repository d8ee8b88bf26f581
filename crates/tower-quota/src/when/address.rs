use core::net::IpAddr;

use super::condition::{Condition, PatternError};
use crate::head::RequestHead;
use crate::key::{ClientIp, Networks, network};
use crate::valid::valid;

/// Matches clients whose address is in one of these networks.
///
/// Behind a proxy, name your [proxies](crate::key::ClientIp::behind). Otherwise the condition
/// compares the address of the proxy, and matches every client or no client.
///
/// IPv6 networks, even `::/0`, never contain the IPv4 addresses that [`client_ip`](crate::key::client_ip) reads from
/// IPv6 addresses.
///
/// ```
/// use tower_quota::key::{self, Proxies, Source};
/// use tower_quota::{Policy, when};
///
/// // Our own monitoring is never refused.
/// let client = key::client_ip().behind(Proxies::networks(["10.0.0.0/24"]), Source::XForwardedFor);
/// let policy = Policy::new().allow(when::address_in(client, ["10.20.0.0/16", "192.0.2.44"]));
/// # let _ = policy;
/// ```
///
/// # Panics
/// Panics if a text is invalid.
#[must_use]
#[track_caller]
#[doc(alias = "cidr")]
#[doc(alias = "ip allow list")]
#[doc(alias = "ip block list")]
pub fn address_in<T: AsRef<str>>(
    client: ClientIp,
    networks: impl IntoIterator<Item = T>,
) -> Box<dyn Condition> {
    valid(try_address_in(client, networks))
}

/// Works like [`address_in`], but never panics.
///
/// # Errors
/// Returns an error if a text is invalid.
pub fn try_address_in<T: AsRef<str>>(
    client: ClientIp,
    networks: impl IntoIterator<Item = T>,
) -> Result<Box<dyn Condition>, PatternError> {
    let parsed = |text: T| {
        let text = text.as_ref();
        network(text).ok_or_else(|| PatternError::Network(text.to_owned()))
    };
    let networks: Networks = networks.into_iter().map(parsed).collect::<Result<_, _>>()?;
    Ok(Box::new(move |head: &RequestHead<'_>| {
        client
            .address(head)
            .is_some_and(|address| networks.contain(address))
    }))
}

/// Returns the first and last address of a network, for your own index.
///
/// Mapped IPv6 becomes IPv4, as in [`address_in`].
///
/// # Errors
/// Returns an error if the text is invalid.
pub fn try_network_range(text: &str) -> Result<(IpAddr, IpAddr), PatternError> {
    match network(text) {
        Some(network) => Ok((network.network(), network.broadcast())),
        None => Err(PatternError::Network(text.to_owned())),
    }
}
