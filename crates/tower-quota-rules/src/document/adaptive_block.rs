//! Blocks of clients that are refused for long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::DurationText;

/// Blocks clients that are refused for long, each time for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveBlock {
    /// The time for which a client must be refused without a pause before it is blocked.
    pub after: DurationText,
    /// The first block.
    pub first: DurationText,
    /// By how much each further block is longer than the one before. The default is 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub factor: Option<u32>,
    /// The longest block. The default is 1d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<DurationText>,
    /// The blocked identity: the client's key, which is the default, or its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<BlockBy>,
    /// The leading bits of a blocked IPv4 network. The default is 32: fewer block all clients behind one address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub prefix_v4: Option<u8>,
    /// The leading bits of a blocked IPv6 network. The default is 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub prefix_v6: Option<u8>,
}

/// The identity that an adaptive block blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockBy {
    /// The key of the limit that refused.
    Key,
    /// The network of the client's address.
    Network,
}
