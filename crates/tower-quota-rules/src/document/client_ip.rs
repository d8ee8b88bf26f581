//! Reading of addresses by the key `client_ip`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{HeaderText, Network};

/// The way in which the key `client_ip` reads addresses: the peer's, unless proxies are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientIpRule {
    /// The networks of the proxies that are trusted to report the client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<Network>,
    /// The number of proxies, where their addresses are not known: instead of `trusted_proxies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub hops: Option<u8>,
    /// The one header in which they report it. The default is `x-forwarded-for`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderText>,
    /// The leading bits of IPv4 addresses that tell clients apart. The default is 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub prefix_v4: Option<u8>,
    /// The leading bits of IPv6 addresses that tell clients apart. The default is 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub prefix_v6: Option<u8>,
}

impl ClientIpRule {
    /// Returns whether nothing is set.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
