use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use tower_quota::Over;

use super::duration::DurationText;
use super::error::TextError;
use super::macros::{wraps, written_as_text};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverText(Over);

wraps!(OverText, Over);

impl FromStr for OverText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let up_to = words.windows(2).position(|pair| pair == ["up", "to"]);
        let span = |words: &[&str]| words.join(" ").parse::<DurationText>().map(Duration::from);
        Ok(Self(match (&words[..], up_to) {
            (["refuse"], _) => Over::Refuse,
            (["flag"], _) => Over::Flag,
            (["delay", ..], Some(end @ 1..)) => {
                let (step, most) = (span(&words[1..end])?, span(&words[end + 2..])?);
                if most < step {
                    return Err(TextError::new(
                        format_args!("{text:?} has a longest delay below the delay of a unit"),
                        "write the delay of a unit first, such as \"delay 250ms up to 5s\"",
                    ));
                }
                Over::Delay { step, most }
            }
            _ => {
                return Err(TextError::new(
                    format_args!("{text:?} is not a choice for requests over the quota"),
                    "give \"refuse\", \"flag\", or a delay for each unit such as \"delay 250ms up to 5s\"",
                ));
            }
        }))
    }
}

impl fmt::Display for OverText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Over::Flag => f.write_str("flag"),
            Over::Delay { step, most } => {
                let (step, most) = (DurationText::from(step), DurationText::from(most));
                write!(f, "delay {step} up to {most}")
            }
            _ => f.write_str("refuse"),
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
            "delay 1s up to 0s",
            "delay 10s up to 300ms",
            "up to 5s",
            "flag 3",
        ] {
            assert!(text.parse::<OverText>().is_err(), "{text}");
        }
    }
}
