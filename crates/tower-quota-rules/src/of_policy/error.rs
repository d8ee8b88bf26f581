//! The reasons why a policy cannot be printed.

use core::error::Error;
use core::fmt;

use crate::text::TextError;

/// The reason why a policy cannot be printed as a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyPrintError {
    /// A part that only code can say.
    Code {
        /// The limit or the list that has it, such as `limit "minute"`.
        place: String,
        /// The part, such as `condition`.
        part: &'static str,
    },
    /// Parts that no document can say together.
    Conflict {
        /// The limit or the list that disagrees with those before it.
        place: String,
        /// The reason, and how to change that.
        reason: &'static str,
    },
    /// A text that documents do not allow.
    Text {
        /// The limit or the list that has it.
        place: String,
        /// The reason.
        error: TextError,
    },
}

impl fmt::Display for PolicyPrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code { place, part } => write!(
                f,
                "{place} has a {part} that only code can say: give it a name with `described`, or leave it in the code \
                 and add it by `LiveOptions::with_policy`"
            ),
            Self::Conflict { place, reason } => write!(f, "{place}: {reason}"),
            Self::Text { place, error } => write!(f, "{place}: {error}"),
        }
    }
}

impl Error for PolicyPrintError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Text { error, .. } => Some(error),
            _ => None,
        }
    }
}
