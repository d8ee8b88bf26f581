use core::fmt;
use core::str::FromStr;

use super::error::TextError;
use super::macros::written_as_text;
use super::name::NameText;

/// The tier of an assignment, such as `pro` or `code plan`.
///
/// ```
/// use tower_quota_rules::TierText;
///
/// let tier: TierText = "code plan".parse()?;
/// assert_eq!(tier, TierText::Code("plan".parse()?));
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TierText {
    /// The tier with this name.
    Named(NameText),
    /// `code plan`, the tier that a closure from your code returns.
    Code(NameText),
}

impl FromStr for TierText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        match text.strip_prefix("code ") {
            Some(name) => Ok(Self::Code(name.parse()?)),
            None => Ok(Self::Named(text.parse()?)),
        }
    }
}

impl fmt::Display for TierText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{name}"),
            Self::Code(name) => write!(f, "code {name}"),
        }
    }
}

written_as_text!(TierText, "a tier such as \"pro\" or \"code plan\"", {
    "pattern": "^(code )?[ -~]{1,64}$",
    "examples": ["pro", "code plan"]
});
