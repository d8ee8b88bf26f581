use serde::Serialize;
use tower_quota_rules::ListName;

use super::block::{Block, BlockKind};
use crate::time::Time;
use crate::version::Version;

/// The entry that blocks or allows a client, in the list of blocks or in the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The effect, `block` or `allow`.
    pub kind: String,
    /// The id of a block, or the place of an entry in the document, such as `block[2]`.
    pub id: String,
    /// The clients, or the version of the document.
    pub target: String,
    /// The reason.
    pub reason: String,
    /// The author.
    pub author: String,
    /// The start, or the time at which the version was put.
    pub since: Time,
    /// The end. Entries of the document have no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Listing {
    pub(crate) fn of_block(block: &Block) -> Self {
        let kind = match block.kind {
            BlockKind::Allow => ListName::Allow,
            _ => ListName::Block,
        };
        Self {
            kind: kind.to_string(),
            id: block.id.clone(),
            target: block.target.to_string(),
            reason: block.reason.clone(),
            author: block.author.clone(),
            since: block.since,
            until: Some(block.until),
        }
    }

    pub(crate) fn of_document(list: ListName, position: usize, version: &Version) -> Self {
        Self {
            kind: list.to_string(),
            id: format!("{list}[{position}]"),
            target: format!("version {} of the rules", version.number),
            reason: version.comment.clone(),
            author: version.author.clone(),
            since: version.time,
            until: None,
        }
    }
}
