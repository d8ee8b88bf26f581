use core::fmt;
use core::str::FromStr;

use super::error::TextError;
use super::macros::written_as_text;
use super::name::NameText;
use super::pattern::HeaderText;

/// The cost of a request as text, a function of [`tower_quota::cost`].
///
/// The number after `default` is the cost of requests without the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CostText {
    /// `5`, for every request.
    Constant(u64),
    /// `header x-cost default 1`, the number in a header.
    Header {
        /// The header.
        name: HeaderText,
        /// The cost without the header.
        default: u64,
    },
    /// `body_size 1000000 default 10`, the length of the body in units.
    BodySize {
        /// The bytes of a unit.
        unit: u64,
        /// The cost if the length is unknown.
        default: u64,
    },
    /// `code units`, a function from your code.
    Code(NameText),
}

impl FromStr for CostText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |text: &str| text.parse::<u64>().ok();
        let cost = match words[..] {
            [units] => number(units).map(Self::Constant),
            ["header", name, "default", default] => match number(default) {
                Some(default) => Some(Self::Header {
                    name: name.parse()?,
                    default,
                }),
                None => None,
            },
            ["body_size", unit, "default", default] => match (number(unit), number(default)) {
                (Some(unit @ 1..), Some(default)) => Some(Self::BodySize { unit, default }),
                _ => None,
            },
            ["code", ..] => {
                return Ok(Self::Code(
                    text.trim_start()["code".len()..].trim().parse()?,
                ));
            }
            _ => None,
        };
        cost.ok_or_else(|| {
            TextError::new(
                format_args!("{text:?} is not a cost"),
                "give a number, \"header x-cost default 1\", \"body_size 1000000 default 10\" or \"code NAME\"",
            )
        })
    }
}

impl fmt::Display for CostText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(units) => write!(f, "{units}"),
            Self::Header { name, default } => write!(f, "header {name} default {default}"),
            Self::BodySize { unit, default } => write!(f, "body_size {unit} default {default}"),
            Self::Code(name) => write!(f, "code {name}"),
        }
    }
}

written_as_text!(number CostText, "a cost, as a number or a text such as \"header x-cost default 1\"", {
    "anyOf": [
        { "type": "integer", "minimum": 0 },
        { "type": "string", "pattern": "^\\s*([0-9]+|header\\s+\\S+\\s+default\\s+[0-9]+|body_size\\s+[0-9]+\\s+default\\s+[0-9]+|code\\s.+)\\s*$" }
    ],
    "examples": [5, "header x-cost default 1", "body_size 1000000 default 10", "code units"]
});
