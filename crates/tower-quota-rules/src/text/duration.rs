use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::error::TextError;
use super::macros::written_as_text;

/// A duration as text, such as `90s`, `15 minutes`, `1h30m` or `250ms`.
///
/// Write integers with a unit: `us`, `ms`, `s`, `m`, `h`, `d`, `w`, or its name.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_rules::DurationText;
///
/// let span: DurationText = "1 hour 30 minutes".parse()?;
/// assert_eq!(Duration::from(span), Duration::from_secs(5_400));
/// assert_eq!(span.to_string(), "1h30m");
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DurationText(Duration);

/// The units with their microseconds, abbreviation, name and other names, the longest unit first.
const UNITS: [(u64, &str, &str, &[&str]); 7] = [
    (604_800_000_000, "w", "week", &["wk"]),
    (86_400_000_000, "d", "day", &[]),
    (3_600_000_000, "h", "hour", &["hr"]),
    (60_000_000, "m", "minute", &["min"]),
    (1_000_000, "s", "second", &["sec"]),
    (1_000, "ms", "millisecond", &["msec"]),
    (1, "us", "microsecond", &["usec", "µs"]),
];

pub(super) fn unit_micros(text: &str) -> Option<u64> {
    let one = text.strip_suffix('s').unwrap_or(text);
    for (micros, short, name, others) in UNITS {
        if [short, name].contains(&text) || name == one {
            return Some(micros);
        }
        if others.contains(&text) || others.contains(&one) {
            return Some(micros);
        }
    }
    None
}

/// Returns a duration in its longest exact unit, as a count and the name of the unit.
pub(super) fn in_one_unit(micros: u64) -> (u64, &'static str) {
    // Weeks are read but never written, since most people count to 7 days.
    let unit = UNITS
        .iter()
        .skip(1)
        .find(|(unit, ..)| micros.is_multiple_of(*unit));
    unit.map_or((micros, "microsecond"), |(unit, _, name, _)| {
        (micros / unit, name)
    })
}

/// Returns the leading number and the rest. `_` may separate digits.
pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.ends_with('_');
    Some((
        is_number.then(|| digits.replace('_', ""))?.parse().ok()?,
        rest,
    ))
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut is_empty = true;
    while !rest.is_empty() {
        let (count, after) = leading_number(rest)?;
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        total = total.checked_add(count.checked_mul(unit_micros(&unit.to_lowercase())?)?)?;
        rest = next.trim_start();
        is_empty = false;
    }
    (!is_empty).then_some(Duration::from_micros(total))
}

impl From<Duration> for DurationText {
    /// Converts a duration without its fraction of a microsecond. The maximum is half a million
    /// years.
    fn from(span: Duration) -> Self {
        Self(Duration::from_micros(micros(span)))
    }
}

impl From<DurationText> for Duration {
    fn from(text: DurationText) -> Self {
        text.0
    }
}

impl FromStr for DurationText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = || {
            TextError::new(
                format_args!("{text:?} is not a time span"),
                "give integers with units, such as \"30s\", \"15 minutes\" or \"1h30m\"",
            )
        };
        parse_span(text).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = micros(self.0);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, short, ..) in UNITS.iter().skip(1) {
            if rest >= *unit {
                write!(f, "{}{short}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

written_as_text!(DurationText, "a time span such as \"30s\" or \"1h30m\"", {
    "pattern": "^\\s*([0-9][0-9_]*\\s*[a-zA-Zµ]+\\s*)+$",
    "examples": ["30s", "15 minutes", "1h30m", "250ms"]
});

#[cfg(test)]
mod tests {
    use super::DurationText;

    #[test]
    fn spans_print_back() {
        for (text, printed) in [
            ("90s", "1m30s"),
            ("15 minutes", "15m"),
            ("1 week", "7d"),
            ("1_500 us", "1ms500us"),
            ("0s", "0s"),
            ("2Hrs", "2h"),
        ] {
            assert_eq!(
                text.parse::<DurationText>().map(|span| span.to_string()),
                Ok(printed.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_spans_are_refused() {
        for text in [
            "",
            "5",
            "minute",
            "1.5s",
            "-1s",
            "5 parsecs",
            "1h x",
            "99999999999999999999s",
            "_1s",
        ] {
            assert!(text.parse::<DurationText>().is_err(), "{text}");
        }
    }
}
