//! Reads quotas.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use tower_quota::{Algorithm, Quota};

use super::duration::{leading_number, micros, parse_span, unit_micros};
use super::error::TextError;
use super::quota::{ALGORITHMS, CALENDAR, QuotaText};

const OPTIONS: [&str; 5] = ["burst", "queue", "offset", "from_first_request", "in"];

const CONFLICTS: [(&str, &str, &str); 4] = [
    (
        "burst",
        "queue",
        "a queue is the burst of a leaky bucket, and it has both",
    ),
    (
        "offset",
        "from_first_request",
        "a window has one start, and it has both an offset and \"from_first_request\"",
    ),
    ("in", "offset", "windows of a calendar have no offset"),
    (
        "in",
        "from_first_request",
        "windows of a calendar start with the calendar",
    ),
];

const EXAMPLES: &str = "write units per period, such as \"100/minute\", \"10/second burst 20\" or \"5 per 15 minutes sliding_log\", or units at the same time, such as \"2 at once\"";

/// A text that is not a quota.
#[derive(Clone, Copy)]
struct Wrong<'t>(&'t str);

impl Wrong<'_> {
    fn since<T>(self, reason: impl fmt::Display) -> Result<T, TextError> {
        let text = self.0;
        let wrong = format_args!("{text:?} is not a quota, since {reason}");
        Err(TextError::new(wrong, EXAMPLES))
    }
}

impl FromStr for QuotaText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = Wrong(text);
        let lower = text.to_ascii_lowercase();
        let Some((units, rest)) = leading_number(lower.trim_start()) else {
            return wrong.since("it does not begin with a number of units");
        };
        let after_units = rest.trim_start();
        let words: Vec<&str> = after_units.split_whitespace().collect();
        if let ["at", "once", ref options @ ..] = words[..] {
            return at_once(units, options, wrong).map(Self);
        }
        let rest = after_units
            .strip_prefix('/')
            .or_else(|| after_units.strip_prefix("per "));
        let Some(rest) = rest else {
            let period = after_units.find('/').or_else(|| after_units.find(" per "));
            let Some(period) = period else {
                return wrong.since("it does not say per what");
            };
            let word = after_units[..period].trim();
            return wrong.since(format_args!(
                "{word:?} stands between the units and the period"
            ));
        };
        let rest = rest.trim_start();
        let (count, rest) = leading_number(rest).unwrap_or((1, rest));
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphabetic());
        let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let Some(period) = period_micros(unit).and_then(|micros| micros.checked_mul(count)) else {
            return wrong.since(format_args!("{unit:?} is not a unit of time"));
        };
        let quota = Quota::try_new(units, Duration::from_micros(period));
        with_options(quota.map_err(TextError::of)?, rest, wrong).map(Self)
    }
}

fn at_once(units: u64, options: &[&str], wrong: Wrong<'_>) -> Result<Quota, TextError> {
    let quota = Quota::try_concurrent(units).map_err(TextError::of)?;
    match options {
        [] => Ok(quota),
        ["ttl", span @ ..] => match parse_span(&span.concat()) {
            Some(ttl) => quota.try_ttl(ttl).map_err(TextError::of),
            None => wrong.since("\"ttl\" takes a time span"),
        },
        [unknown, ..] => wrong.since(format_args!(
            "only \"ttl\" may follow \"at once\", and {unknown:?} does"
        )),
    }
}

/// Returns the length of a unit. A month has 30 days and a year 365 days, as in `Quota`.
fn period_micros(unit: &str) -> Option<u64> {
    let name = unit.strip_suffix('s').unwrap_or(unit);
    let mut nominal = CALENDAR.iter();
    let found = nominal.find(|(_, known)| *known == name);
    found
        .map(|(micros, _)| *micros)
        .or_else(|| unit_micros(unit))
}

#[cfg(feature = "calendar")]
fn in_zone(quota: Quota, zone: &str) -> Result<Quota, TextError> {
    quota.calendar(zone).map_err(TextError::of)
}

#[cfg(not(feature = "calendar"))]
fn in_zone(_: Quota, zone: &str) -> Result<Quota, TextError> {
    Err(TextError::new(
        format_args!("this program knows no calendar, and so no windows in {zone:?}"),
        "build it with the feature \"calendar\" of tower-quota-rules",
    ))
}

fn with_options(mut quota: Quota, text: &str, wrong: Wrong<'_>) -> Result<Quota, TextError> {
    let algorithm = |word: &str| {
        let mut algorithms = ALGORITHMS.iter();
        algorithms.find(|(name, _)| *name == word)
    };
    let mut algorithms = text.split_whitespace().filter_map(algorithm);
    let named = algorithms.next().map(|(_, algorithm)| *algorithm);
    if let Some(algorithm) = named {
        quota = quota.try_algorithm(algorithm).map_err(TextError::of)?;
    }
    if algorithms.next().is_some() {
        return wrong.since("it names two algorithms");
    }
    let words = text.split_whitespace();
    let mut words = words.filter(|word| algorithm(word).is_none()).peekable();
    let mut known = Vec::new();
    while let Some(word) = words.next() {
        if known.contains(&word) {
            return wrong.since(format_args!("it says {word:?} twice"));
        }
        known.push(word);
        for (one, other, reason) in CONFLICTS {
            if known.contains(&one) && known.contains(&other) {
                return wrong.since(reason);
            }
        }
        let mut integer = || match words.next().and_then(leading_number) {
            Some((number, "")) => Ok(number),
            _ => wrong.since(format_args!("{word:?} takes an integer")),
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
                    return wrong.since("\"offset\" takes a time span");
                };
                quota.try_offset(offset)
            }
            // Check with an offset, which the same algorithms refuse.
            "from_first_request" => {
                let aligned = quota.try_offset(Duration::ZERO);
                aligned.map(Quota::from_first_request)
            }
            "in" => {
                if named.is_some_and(|algorithm| algorithm != Algorithm::FixedWindow) {
                    return wrong.since("windows of a calendar are fixed windows");
                }
                let Some(zone) = words.next() else {
                    return wrong.since("\"in\" takes a time zone such as \"Europe/Berlin\"");
                };
                let period = micros(quota.period());
                if CALENDAR.iter().all(|(nominal, _)| *nominal != period) {
                    return wrong.since("a calendar has days, weeks, months and years");
                }
                quota = in_zone(quota, zone)?;
                continue;
            }
            unknown => {
                let known = ALGORITHMS.iter().map(|(name, _)| *name).chain(OPTIONS);
                return match crate::problem::nearest(unknown, known) {
                    Some(near) => wrong.since(format_args!(
                        "{unknown:?} is not a part of one; is {near:?} meant?"
                    )),
                    None => wrong.since(format_args!("{unknown:?} is not a part of one")),
                };
            }
        };
        quota = changed.map_err(TextError::of)?;
    }
    Ok(quota)
}

fn is_span(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) || unit_micros(word).is_some()
}
