use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use tower_quota::{Algorithm, Quota};

use super::duration::{in_one_unit, leading_number, micros, parse_span, unit_micros};
use super::error::TextError;
use super::macros::written_as_text;

/// A quota as text, such as `100/minute`, `5 per 15 minutes sliding_log` or `1000/day fixed_window
/// offset 6h`.
///
/// | part | meaning |
/// |---|---|
/// | `100/minute`, `5 per 15 minutes`, `10/s` | units per period |
/// | `token_bucket` (the default), `gcra`, `leaky_bucket`, `fixed_window`, `sliding_window`, `sliding_log` | the algorithm |
/// | `burst 20` | the capacity of a bucket |
/// | `queue 50` | the places of a leaky bucket |
/// | `offset 6h`, `from_first_request` | the start of a fixed window |
///
/// Quotas print a text that reads as the same quota, except concurrency limits and calendar
/// windows.
///
/// ```
/// use tower_quota::Quota;
/// use tower_quota_rules::QuotaText;
///
/// let text: QuotaText = "10/second burst 50".parse()?;
/// assert_eq!(Quota::from(text), Quota::per_second(10).burst(50));
/// assert_eq!(QuotaText::from(Quota::per_day(5).fixed_window()).to_string(), "5/day fixed_window");
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaText(Quota);

const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("token_bucket", Algorithm::TokenBucket),
    ("gcra", Algorithm::Gcra),
    ("leaky_bucket", Algorithm::LeakyBucket),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_window", Algorithm::SlidingWindow),
    ("sliding_log", Algorithm::SlidingLog),
];

const OPTIONS: [&str; 4] = ["burst", "queue", "offset", "from_first_request"];

const CONFLICTS: [(&str, &str, &str); 2] = [
    (
        "burst",
        "queue",
        "since a queue is the burst of a leaky bucket, and it has both",
    ),
    (
        "offset",
        "from_first_request",
        "since a window has one start, and it has both an offset and \"from_first_request\"",
    ),
];

const EXAMPLES: &str = "write units per period, such as \"100/minute\", \"10/second burst 20\" or \"5 per 15 minutes sliding_log\"";

impl QuotaText {
    /// Returns the quota.
    pub const fn quota(&self) -> &Quota {
        &self.0
    }
}

impl From<Quota> for QuotaText {
    fn from(quota: Quota) -> Self {
        Self(quota)
    }
}

impl From<QuotaText> for Quota {
    fn from(text: QuotaText) -> Self {
        text.0
    }
}

impl FromStr for QuotaText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = |reason: fmt::Arguments<'_>| {
            TextError::new(format_args!("{text:?} is not a quota, {reason}"), EXAMPLES)
        };
        let lower = text.to_ascii_lowercase();
        let Some((units, rest)) = leading_number(lower.trim_start()) else {
            return Err(wrong(format_args!(
                "since it does not begin with a number of units"
            )));
        };
        let after_units = rest.trim_start();
        let rest = after_units
            .strip_prefix('/')
            .or_else(|| after_units.strip_prefix("per "))
            .map(str::trim_start);
        let Some(rest) = rest else {
            let period = after_units.find('/').or_else(|| after_units.find(" per "));
            let Some(period) = period else {
                return Err(wrong(format_args!("since it does not say per what")));
            };
            let word = after_units[..period].trim();
            return Err(wrong(format_args!(
                "since {word:?} stands between the units and the period"
            )));
        };
        let (count, rest) = leading_number(rest).unwrap_or((1, rest));
        let rest = rest.trim_start();
        let (unit, rest) = rest.split_at(
            rest.find(|c: char| !c.is_alphabetic())
                .unwrap_or(rest.len()),
        );
        let Some(period) = unit_micros(unit).and_then(|micros| micros.checked_mul(count)) else {
            return Err(wrong(format_args!("since {unit:?} is not a unit of time")));
        };
        let quota = Quota::try_new(units, Duration::from_micros(period));
        with_options(quota.map_err(TextError::of)?, rest, &wrong).map(Self)
    }
}

fn with_options(
    mut quota: Quota,
    text: &str,
    wrong: &dyn Fn(fmt::Arguments<'_>) -> TextError,
) -> Result<Quota, TextError> {
    let algorithm = |word: &str| {
        let mut algorithms = ALGORITHMS.iter();
        algorithms.find(|(name, _)| *name == word)
    };
    let mut algorithms = text.split_whitespace().filter_map(algorithm);
    if let Some((_, algorithm)) = algorithms.next() {
        quota = quota.try_algorithm(*algorithm).map_err(TextError::of)?;
    }
    if algorithms.next().is_some() {
        return Err(wrong(format_args!("since it names two algorithms")));
    }
    let words = text.split_whitespace();
    let mut words = words.filter(|word| algorithm(word).is_none()).peekable();
    let mut known = Vec::new();
    while let Some(word) = words.next() {
        if known.contains(&word) {
            return Err(wrong(format_args!("since it says {word:?} twice")));
        }
        known.push(word);
        let mut integer = || {
            let number = words.next().and_then(leading_number);
            let number = number.filter(|(_, rest)| rest.is_empty());
            let missing = || wrong(format_args!("since {word:?} takes an integer"));
            number.map(|(number, _)| number).ok_or_else(missing)
        };
        let changed = match word {
            "burst" => quota.try_burst(integer()?),
            "queue" => quota.try_queue(integer()?),
            "offset" => {
                let mut span = String::new();
                while let Some(part) = words.next_if(|part| is_span(part)) {
                    span += part;
                }
                let Some(offset) = parse_span(&span) else {
                    return Err(wrong(format_args!("since \"offset\" takes a time span")));
                };
                quota.try_offset(offset)
            }
            // Check with an offset, which the same algorithms refuse.
            "from_first_request" => {
                let aligned = quota.try_offset(Duration::ZERO);
                aligned.map(Quota::from_first_request)
            }
            unknown => return Err(wrong(format_args!("{}", unknown_word(unknown)))),
        };
        quota = changed.map_err(TextError::of)?;
    }
    for (one, other, reason) in CONFLICTS {
        if known.contains(&one) && known.contains(&other) {
            return Err(wrong(format_args!("{reason}")));
        }
    }
    Ok(quota)
}

fn is_span(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) || unit_micros(word).is_some()
}

fn unknown_word(word: &str) -> String {
    let known = ALGORITHMS.iter().map(|(name, _)| *name).chain(OPTIONS);
    match crate::problem::nearest(word, known) {
        Some(near) => format!("since {word:?} is not a part of one; is {near:?} meant?"),
        None => format!("since {word:?} is not a part of one"),
    }
}

/// Returns whether a bucket has an explicit capacity.
///
/// Only such a quota cannot become a window.
fn has_given_burst(quota: &Quota) -> bool {
    quota.algorithm().is_bucket() && quota.try_algorithm(Algorithm::FixedWindow).is_err()
}

impl fmt::Display for QuotaText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = &self.0;
        if quota.algorithm() == Algorithm::Concurrent {
            // Write any text, because documents cannot contain this limit.
            return write!(f, "{} at once for {:?}", quota.units(), quota.period());
        }
        match in_one_unit(micros(quota.period())) {
            (1, unit) => write!(f, "{}/{unit}", quota.units())?,
            (count, unit) => write!(f, "{} per {count} {unit}s", quota.units())?,
        }
        if quota.algorithm() != Algorithm::TokenBucket
            && let Some((name, _)) = ALGORITHMS
                .iter()
                .find(|(_, algorithm)| *algorithm == quota.algorithm())
        {
            write!(f, " {name}")?;
        }
        if has_given_burst(quota) {
            let word = if quota.algorithm() == Algorithm::LeakyBucket {
                "queue"
            } else {
                "burst"
            };
            write!(f, " {word} {}", quota.capacity())?;
        }
        if quota.is_calendar() {
            // Write a word that documents cannot contain, so that the text never reads as another
            // quota.
            f.write_str(" calendar")?;
        }
        match quota.window_offset() {
            Some(0) => Ok(()),
            Some(offset) => write!(
                f,
                " offset {}",
                super::DurationText::from(Duration::from_micros(offset))
            ),
            None => f.write_str(" from_first_request"),
        }
    }
}

written_as_text!(QuotaText, "a quota such as \"100/minute\" or \"10/second burst 20\"", {
    "pattern": "^\\s*[0-9][0-9_]*\\s*(/|[pP][eE][rR] )\\s*([0-9][0-9_]*\\s*)?[a-zA-Zµ]+(\\s+[a-zA-Z0-9_µ]+)*\\s*$",
    "examples": ["100/minute", "10/second burst 20", "5 per 15 minutes sliding_log", "1000/day fixed_window offset 6h"]
});

#[cfg(test)]
mod tests {
    use tower_quota::Quota;

    use super::QuotaText;

    #[test]
    fn quotas_are_read_in_each_notation() {
        for (text, quota) in [
            ("100/minute", Quota::per_minute(100)),
            (" 5_000 per 1 h ", Quota::per_hour(5_000)),
            ("10/S BURST 50", Quota::per_second(10).burst(50)),
            (
                "5 per 15 minutes sliding_log",
                Quota::new(5, core::time::Duration::from_secs(900)).sliding_log(),
            ),
            (
                "1/day fixed_window offset 6h 30m",
                Quota::per_day(1)
                    .fixed_window()
                    .offset(core::time::Duration::from_secs(23_400)),
            ),
            (
                "1/day from_first_request fixed_window",
                Quota::per_day(1).fixed_window().from_first_request(),
            ),
            (
                "9/s leaky_bucket queue 4",
                Quota::per_second(9).leaky_bucket().queue(4),
            ),
        ] {
            assert_eq!(
                text.parse::<QuotaText>().map(Quota::from),
                Ok(quota),
                "{text}"
            );
        }
    }

    #[test]
    fn calendar_quota_prints_no_other_quota() {
        let quota = Quota::per_month(5).calendar("UTC").unwrap();
        let text = QuotaText::from(quota).to_string();
        assert_eq!(text, "5 per 30 days fixed_window calendar");
        assert!(text.parse::<QuotaText>().is_err());
    }

    #[test]
    fn given_default_burst_is_printed() {
        let given = Quota::per_minute(100).burst(100);
        assert_ne!(given, Quota::per_minute(100));
        assert_eq!(QuotaText::from(given).to_string(), "100/minute burst 100");
    }

    #[test]
    fn invalid_quotas_are_refused() {
        for text in [
            "",
            "100",
            "minute",
            "100/",
            "100/fortnight",
            "-1/s",
            "1.5/s",
            "100/minute burst",
            "100/minute burst 0",
            "1/s queue 3",
            "1/s gcra gcra",
            "1/s gcra sliding_log",
            "1/s burst 2 burst 2",
            "1/s offset 1ms",
            "1/s fixed_window offset",
            "1/s fixed_window offset 2s",
            "99999999999999999999/s",
            "1/0s",
            "100/minuteburst 20",
            "1/s burst 2 queue 2",
        ] {
            assert!(text.parse::<QuotaText>().is_err(), "{text}");
        }
    }
}
