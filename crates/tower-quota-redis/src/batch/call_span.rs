//! A call from its beginning to its end.

use std::time::Instant;

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// With an answer of any kind.
    Answered,
    /// Without an answer by the deadline.
    Late,
    /// Without a connection, or with the loss of the connection.
    Broken,
}

/// The weight and the beginning of a call.
pub(super) struct CallSpan {
    pub(super) began: Instant,
    pub(super) weight: usize,
}
