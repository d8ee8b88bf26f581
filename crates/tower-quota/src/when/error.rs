//! What can be wrong with what a condition compares with.

use core::error::Error;
use core::fmt;

/// A pattern that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// Not a pattern of paths.
    Path {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither a host's name, nor an address, nor `*.` before a name.
    Host(String),
    /// Neither an address nor a network, which is an address with the length of its prefix: `203.0.113.0/24`.
    Network(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { pattern, reason } => write!(f, "{pattern:?} is not a pattern of paths: {reason}"),
            Self::Host(pattern) => write!(
                f,
                "{pattern:?} is not a host: give a name without a port such as \"api.example.com\", or \
                 \"*.example.com\" for every name under it"
            ),
            Self::Network(text) => write!(
                f,
                "{text:?} is not a network: give an address, or one with the length of its prefix such as \
                 \"203.0.113.0/24\""
            ),
        }
    }
}

impl Error for PatternError {}

/// What a function does that takes a pattern written in code.
#[track_caller]
pub(super) fn sound<T>(checked: Result<T, PatternError>) -> T {
    match checked {
        Ok(condition) => condition,
        #[expect(clippy::panic, reason = "documented: a pattern written in code fails at start")]
        Err(error) => panic!("{error}"),
    }
}
