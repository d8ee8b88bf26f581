use std::time::Duration;

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When the response head was there, since the layer was built.
    pub(crate) ended: Duration,
    /// The time from admission to the response head.
    pub(crate) took: Duration,
    /// The requests in progress at admission, with this one.
    pub(crate) in_progress: usize,
    pub(crate) kind: Kind,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Answered,
    /// Took a place and gave no answer, such as after a timeout.
    Failed,
}
