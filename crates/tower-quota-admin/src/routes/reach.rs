use serde::Serialize;
use tower_quota_live::Block;
use utoipa::ToSchema;

use crate::api::Api;

/// Where a block or an override holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) enum Reach {
    #[serde(rename = "all instances")]
    All,
    #[serde(rename = "this instance only, until it ends")]
    Here,
    /// The store did not answer. The instance writes the change to the store later.
    #[serde(rename = "this instance only, until the store answers")]
    HereForNow,
}

/// A block or an override, and where it holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reaching {
    #[serde(flatten)]
    pub(super) block: Block,
    pub(super) reach: Reach,
    /// Why a block may have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Reach {
    pub(crate) fn of(api: &Api) -> Self {
        match api.live.blocks_are_shared() {
            true => Self::All,
            false => Self::Here,
        }
    }
}
