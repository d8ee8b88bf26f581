use core::borrow::Borrow;

use tower_quota::Name;

use super::error::TextError;
use super::macros::checked_text;

checked_text! {
    /// The name of a limit, a tier, a unit or a part from your code. It has 1 to 64 printable ASCII
    /// characters.
    ///
    /// Only a valid document makes a [`Name`], which is never freed.
    NameText, name, "a name", { "pattern": "^[ -~]{1,64}$" }
}

impl NameText {
    /// The maximum number of characters of a name.
    pub const MAX_LENGTH: usize = 64;
}

fn name(text: &str) -> Result<(), TextError> {
    let fits = (1..=NameText::MAX_LENGTH).contains(&text.len());
    if fits && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    Err(TextError::new(
        format_args!("the name {text:?} fits no header"),
        "give 1 to 64 printable ASCII characters",
    ))
}

impl Borrow<str> for NameText {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&NameText> for Name {
    fn from(text: &NameText) -> Self {
        Self::from(String::from(text.as_str()))
    }
}
