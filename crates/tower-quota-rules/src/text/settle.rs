use core::fmt;
use core::str::FromStr;

use tower_quota::settle::Settle;

use super::error::TextError;
use super::macros::{wraps, written_as_text};
use super::name::NameText;
use super::pattern::HeaderText;

/// A settlement rule as text, see [`tower_quota::settle`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SettleText {
    /// `handler`, the cost set by the handler.
    Handler,
    /// `only_failures`, no charge for a successful request.
    OnlyFailures,
    /// `only_successes`, no charge for a failed request.
    OnlySuccesses,
    /// `cost_header x-cost`, the number in a header of the response.
    CostHeader(HeaderText),
    /// `body_bytes 1000` or `body_bytes 1000 cut`, the length of the response body in units.
    BodyBytes {
        /// The bytes of a unit.
        unit: u64,
        /// True to cut the body when the limit is used up.
        cut: bool,
    },
    /// `code tokens`, a rule from your code.
    Code(NameText),
}

impl FromStr for SettleText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["handler"] => Self::Handler,
            ["only_failures"] => Self::OnlyFailures,
            ["only_successes"] => Self::OnlySuccesses,
            ["cost_header", name] => Self::CostHeader(name.parse()?),
            ["body_bytes", unit, ref rest @ ..]
                if matches!(rest, [] | ["cut"])
                    && unit.parse::<u64>().is_ok_and(|unit| unit > 0) =>
            {
                Self::BodyBytes {
                    unit: unit.parse().unwrap_or(1),
                    cut: !rest.is_empty(),
                }
            }
            ["code", ..] => Self::Code(text.trim_start()["code".len()..].trim().parse()?),
            _ => {
                return Err(TextError::new(
                    format_args!("{text:?} is not a rule of settling"),
                    "give \"handler\", \"only_failures\", \"only_successes\", \"cost_header NAME\", \"body_bytes 1000\" or \
                     \"code NAME\"",
                ));
            }
        })
    }
}

impl fmt::Display for SettleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler => f.write_str("handler"),
            Self::OnlyFailures => f.write_str("only_failures"),
            Self::OnlySuccesses => f.write_str("only_successes"),
            Self::CostHeader(name) => write!(f, "cost_header {name}"),
            Self::BodyBytes { unit, cut: false } => write!(f, "body_bytes {unit}"),
            Self::BodyBytes { unit, cut: true } => write!(f, "body_bytes {unit} cut"),
            Self::Code(name) => write!(f, "code {name}"),
        }
    }
}

written_as_text!(SettleText, "a rule of settling such as \"handler\" or \"only_failures\"", {
    "pattern": "^\\s*(handler|only_failures|only_successes|cost_header\\s+\\S+|body_bytes\\s+[0-9]+(\\s+cut)?|code\\s.+)\\s*$",
    "examples": ["handler", "only_failures", "cost_header x-cost", "body_bytes 1000", "code tokens"]
});

/// The cost of a settled request without a response, `keep`, `refund`, or a number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbandonedText(Settle);

wraps!(AbandonedText, Settle);

impl FromStr for AbandonedText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let settle = match text.trim() {
            "keep" => Ok(Settle::Keep),
            "refund" => Ok(Settle::Refund),
            number => number.parse().map(Settle::Cost),
        };
        settle.map(Self).map_err(|_| {
            TextError::new(
                format_args!("{text:?} is not a choice"),
                "give \"keep\", \"refund\" or a number of units",
            )
        })
    }
}

impl fmt::Display for AbandonedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Settle::Refund => f.write_str("refund"),
            Settle::Cost(units) => write!(f, "{units}"),
            _ => f.write_str("keep"),
        }
    }
}

written_as_text!(number AbandonedText, "\"keep\", \"refund\" or a number of units", {
    "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^\\s*(keep|refund|[0-9]+)\\s*$" }]
});
