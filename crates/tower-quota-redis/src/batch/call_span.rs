use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// Any answer, even an error.
    Answered,
    Late,
    /// No connection, or a lost connection.
    Broken,
}

pub(super) struct CallSpan {
    pub(super) began: Instant,
    pub(super) weight: usize,
}
