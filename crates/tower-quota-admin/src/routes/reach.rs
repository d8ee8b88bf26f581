use core::slice;

use serde::Serialize;
use tower_quota_live::{Block, Target};

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
pub(crate) struct RemovedBlocks {
    /// Where the removal holds.
    reach: Reach,
    removed: Vec<Block>,
}

#[derive(Serialize)]
pub(crate) struct Reaching {
    #[serde(flatten)]
    block: Block,
    reach: Reach,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl RemovedBlocks {
    pub(super) fn of(api: &Api, mut removed: Vec<Block>) -> Self {
        removed.iter_mut().for_each(hide);
        let reach = Reach::of(api, &removed);
        Self { reach, removed }
    }
}

impl Reaching {
    pub(super) fn of(api: &Api, mut block: Block, note: Option<String>) -> Self {
        hide(&mut block);
        let reach = Reach::of(api, slice::from_ref(&block));
        Self { block, reach, note }
    }
}

impl Reach {
    /// Returns where the last changes of these blocks hold.
    pub(crate) fn of(api: &Api, changed: &[Block]) -> Self {
        if !api.live.blocks_are_shared() {
            Self::Here
        } else if changed.iter().all(|block| api.live.is_shared(&block.id)) {
            Self::All
        } else {
            Self::HereForNow
        }
    }
}

pub(super) fn hide(block: &mut Block) {
    if let Target::Key { text, .. } = &mut block.target {
        *text = None;
    }
}
