use core::fmt;

/// The error of an invalid text. The message has the text and, after the last colon, the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(Box<str>);

impl TextError {
    pub(crate) fn new(wrong: impl fmt::Display, fix: impl fmt::Display) -> Self {
        Self(format!("{wrong}: {fix}").into())
    }

    /// Converts an error with a fix in its message.
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string().into())
    }
}
