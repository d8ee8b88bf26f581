//! A call, from its beginning to its end.

use std::time::Instant;

use super::flow::Load;

/// The facts about a call that are known when it ends.
pub(super) struct CallSpan {
    pub(super) began: Instant,
    pub(super) weight: usize,
    pub(super) load: Load,
}

/// The end of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// With an answer of any kind.
    Answered,
    /// At its deadline.
    Late,
    /// Without a connection, or with the loss of it.
    Broken,
}
