use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{HeaderText, Network};

/// How the key `client_ip` reads addresses. Reads the peer's address, unless you trust proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientIpRule {
    /// The networks of trusted proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<Network>,
    /// The number of proxies, instead of `trusted_proxies`, if their addresses are unknown.
    #[schemars(range(min = 1, max = 32))]
    pub hops: Option<u8>,
    /// The header with the client's address. The default is `x-forwarded-for`.
    pub header: Option<HeaderText>,
    /// The leading bits of an IPv4 address that identify a client. The default is 32.
    #[schemars(range(min = 1, max = 32))]
    pub prefix_v4: Option<u8>,
    /// The leading bits of an IPv6 address that identify a client. The default is 64.
    #[schemars(range(min = 1, max = 128))]
    pub prefix_v6: Option<u8>,
}

impl ClientIpRule {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
