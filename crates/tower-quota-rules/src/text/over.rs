use core::fmt;
use core::str::FromStr;

use tower_quota::Over;

use super::duration::DurationText;
use super::error::TextError;
use super::macros::written_as_text;

/// What happens to requests over the quota, as text. See [`Over`].
///
/// ```
/// use std::time::Duration;
/// use tower_quota::Over;
/// use tower_quota_rules::OverText;
///
/// let over: OverText = "delay 250ms up to 5s".parse()?;
/// let (step, most) = (Duration::from_millis(250), Duration::from_secs(5));
/// assert_eq!(Over::from(over), Over::Delay { step, most });
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OverText {
    /// `refuse`, the default.
    Refuse,
    /// `flag`, lets the request through and tells the handler.
    Flag,
    /// `delay 250ms up to 5s`, lets the request wait, longer with each unit over the quota.
    Delay {
        /// The wait for each unit over the quota.
        step: DurationText,
        /// The longest wait.
        most: DurationText,
    },
}

impl OverText {
    /// Returns the text of a choice, unless the limit refuses.
    pub(crate) fn of(over: Over) -> Option<Self> {
        match over {
            Over::Flag => Some(Self::Flag),
            Over::Delay { step, most } => Some(Self::Delay {
                step: step.into(),
                most: most.into(),
            }),
            _ => None,
        }
    }
}

impl From<OverText> for Over {
    fn from(text: OverText) -> Self {
        match text {
            OverText::Refuse => Self::Refuse,
            OverText::Flag => Self::Flag,
            OverText::Delay { step, most } => Self::Delay {
                step: step.into(),
                most: most.into(),
            },
        }
    }
}

impl FromStr for OverText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let up_to = words.windows(2).position(|pair| pair == ["up", "to"]);
        match (&words[..], up_to) {
            (["refuse"], _) => Ok(Self::Refuse),
            (["flag"], _) => Ok(Self::Flag),
            (["delay", ..], Some(end @ 1..)) => Ok(Self::Delay {
                step: words[1..end].join(" ").parse()?,
                most: words[end + 2..].join(" ").parse()?,
            }),
            _ => Err(TextError::new(
                format_args!("{text:?} is not a choice for requests over the quota"),
                "give \"refuse\", \"flag\", or a delay for each unit such as \"delay 250ms up to 5s\"",
            )),
        }
    }
}

impl fmt::Display for OverText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse => f.write_str("refuse"),
            Self::Flag => f.write_str("flag"),
            Self::Delay { step, most } => write!(f, "delay {step} up to {most}"),
        }
    }
}

written_as_text!(OverText, "\"refuse\", \"flag\", or a delay such as \"delay 250ms up to 5s\"", {
    "pattern": "^\\s*(refuse|flag|delay\\s+[0-9].*\\sup\\s+to\\s+[0-9].*)\\s*$",
    "examples": ["flag", "delay 250ms up to 5s"]
});

#[cfg(test)]
mod tests {
    use super::OverText;

    #[test]
    fn choices_print_back() {
        for (text, printed) in [
            ("refuse", "refuse"),
            (" flag ", "flag"),
            ("delay 250ms up to 5s", "delay 250ms up to 5s"),
            ("delay 1 minute  30 s up to 1 hour", "delay 1m30s up to 1h"),
        ] {
            let over = text.parse::<OverText>().map(|over| over.to_string());
            assert_eq!(over, Ok(printed.into()), "{text}");
        }
    }

    #[test]
    fn invalid_choices_are_refused() {
        for text in [
            "",
            "delay",
            "delay 250ms",
            "delay up to 5s",
            "delay 5 up to 9",
            "delay 250ms up to",
            "up to 5s",
            "flag 3",
        ] {
            assert!(text.parse::<OverText>().is_err(), "{text}");
        }
    }
}
