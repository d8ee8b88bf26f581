use core::fmt;
use core::str::FromStr;

use ::regex::{Regex, RegexBuilder};
use regex_syntax::hir::Look;
use regex_syntax::hir::literal::Extractor;

use super::error::TextError;
use super::macros::written_as_text;

/// A regular expression on paths, in the syntax of the `regex` crate, such as `^/v[12]/.*`.
///
/// It matches anywhere in the path unless you anchor it by `^` and `$`. Matching takes linear time.
#[derive(Clone, Debug)]
pub struct PathRegex(Regex);

impl PathRegex {
    /// The maximum bytes of a compiled expression.
    pub const MAX_SIZE: usize = 1 << 20;

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the common literal prefix of all matching paths, which may be empty.
    pub(crate) fn beginning(&self) -> String {
        let Ok(hir) = regex_syntax::parse(self.as_str()) else {
            return String::new();
        };
        if !hir.properties().look_set_prefix().contains(Look::Start) {
            return String::new();
        }
        let prefixes = Extractor::new().extract(&hir);
        let common = prefixes.longest_common_prefix().unwrap_or_default();
        String::from_utf8_lossy(common).into_owned()
    }

    /// Returns the compiled expression.
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        &self.0
    }
}

impl FromStr for PathRegex {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        use ::regex::Error;

        let built = RegexBuilder::new(text)
            .size_limit(Self::MAX_SIZE)
            .dfa_size_limit(Self::MAX_SIZE)
            .build();
        built.map(Self).map_err(|error| match error {
            Error::CompiledTooBig(_) => TextError::new(
                format_args!("the expression {text:?} takes more than 1 MB when it is compiled"),
                "repeat less, or use a path pattern",
            ),
            // Take the last line, which has the reason. The lines before it repeat the text.
            other => {
                let reason = other.to_string();
                let reason = reason
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                TextError::new(
                    format_args!("{text:?} is not a regular expression, {reason}"),
                    "write it in the syntax of Rust's regex crate",
                )
            }
        })
    }
}

impl PartialEq for PathRegex {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Display for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

written_as_text!(PathRegex, "a regular expression such as \"^/v[12]/\"", {
    "format": "regex",
    "examples": ["^/v[12]/"]
});
