use core::borrow::Borrow;
use core::fmt;
use core::str::FromStr;

use tower_quota::Name;

use super::error::TextError;
use super::macros::written_as_text;

/// The name of a limit, a tier, a unit or a part from your code. It has 1 to 64 printable ASCII
/// characters.
///
/// Only a valid document makes a [`Name`], which is never freed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameText(Box<str>);

impl NameText {
    /// The most characters of a name.
    pub const MAX_LENGTH: usize = 64;

    /// Returns the text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NameText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let fits = (1..=Self::MAX_LENGTH).contains(&text.len());
        if !fits || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(TextError::new(
                format_args!("the name {text:?} fits no header"),
                "give 1 to 64 printable ASCII characters",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for NameText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for NameText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&NameText> for Name {
    fn from(text: &NameText) -> Self {
        Self::from(String::from(text.as_str()))
    }
}

written_as_text!(NameText, "a name", { "pattern": "^[ -~]{1,64}$" });
