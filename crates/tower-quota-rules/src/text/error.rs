use core::fmt;

/// The error of an invalid text. The message has the text and, after the last colon, the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl core::error::Error for TextError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
