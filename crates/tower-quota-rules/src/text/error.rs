//! The error of a text that is not what its field takes.

use core::fmt;

/// A text that is not what its field takes. The message names the text and, after the last colon, how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError(Box<str>);

impl TextError {
    /// Makes an error of what is wrong and of how to fix it.
    pub(crate) fn new(wrong: impl fmt::Display, fix: impl fmt::Display) -> Self {
        Self(format!("{wrong}: {fix}").into())
    }

    /// Makes an error of another one whose message has both parts.
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string().into())
    }
}

impl core::error::Error for TextError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
