use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// The server answered, even with an error.
    Answered,
    Late,
    /// The call found no connection, or lost its connection.
    Broken,
}

pub(super) struct CallSpan {
    pub(super) began: Instant,
    pub(super) weight: usize,
    /// The weight in flight when the call began, with the call.
    pub(super) under_way: usize,
}
