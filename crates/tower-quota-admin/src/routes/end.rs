use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;

use tower_quota_live::Time;
use tower_quota_rules::DurationText;

use crate::problem::{Problem, ProblemKind, Result};

/// The longest time of a block or an override.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

pub(super) fn end(length: Option<&str>, until: Option<Time>) -> Result<Time> {
    let now = Time::now();
    let until = match (length, until) {
        (None, None) => {
            let detail = "an override needs an end: give `for`, such as \"2h\", or `until`";
            return Err(invalid(detail));
        }
        (None, Some(until)) => until,
        (Some(length), None) => now.after(read::<DurationText>(length)?.into()),
        (Some(_), Some(_)) => {
            return Err(invalid("there are two ends: leave out `for` or `until`"));
        }
    };
    if until <= now || until.since(now) > LONGEST {
        let detail =
            format_args!("{until} is no end: give one in the future, at most a year from now");
        return Err(invalid(detail));
    }
    Ok(until)
}

pub(super) fn read<T: FromStr<Err: Display>>(text: &str) -> Result<T> {
    text.parse().map_err(invalid)
}

pub(super) fn invalid(detail: impl Display) -> Problem {
    Problem::new(ProblemKind::InvalidValue, detail)
}
