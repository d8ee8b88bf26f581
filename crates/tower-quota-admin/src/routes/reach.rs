use serde::Serialize;
use tower_quota_live::Block;

use crate::api::Api;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Reach {
    #[serde(rename = "all instances")]
    All,
    #[serde(rename = "this instance only, and lost when it restarts")]
    Here,
    #[serde(rename = "this instance only, until the store answers")]
    HereForNow,
}

#[derive(Serialize)]
pub(crate) struct Reaching {
    #[serde(flatten)]
    pub(super) block: Block,
    pub(super) reach: Reach,
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
