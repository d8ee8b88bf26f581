use core::fmt;
use core::time::Duration;

use tower_quota::{Algorithm, Quota};

use super::duration::{in_one_unit, micros};
use super::macros::{wraps, written_as_text};

/// A quota as text, such as `100/minute`, `5 per 15 minutes sliding_log` or `1000/day fixed_window
/// offset 6h`.
///
/// | part | meaning |
/// |---|---|
/// | `100/minute`, `5 per 15 minutes`, `10/s` | units per period |
/// | `token_bucket` (the default), `gcra`, `leaky_bucket`, `fixed_window`, `sliding_window`, `sliding_log` | the algorithm |
/// | `10000/month in Europe/Berlin` | days, weeks, months or years of a calendar (feature `calendar`) |
/// | `2 at once`, `2 at once ttl 5m` | units in use at the same time, and the time after which a hold expires |
/// | `burst 20` | the capacity of a bucket |
/// | `queue 50` | the places of a leaky bucket |
/// | `offset 6h`, `from_first_request` | the start of a fixed window |
///
/// Without `in`, a month is any 30 days and a year any 365 days. Quotas print a text that reads as
/// the same quota.
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
pub struct QuotaText(pub(super) Quota);

pub(super) const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("token_bucket", Algorithm::TokenBucket),
    ("gcra", Algorithm::Gcra),
    ("leaky_bucket", Algorithm::LeakyBucket),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_window", Algorithm::SlidingWindow),
    ("sliding_log", Algorithm::SlidingLog),
];

const DAY: u64 = 86_400_000_000;

/// The periods of a calendar, by their nominal length.
pub(super) const CALENDAR: [(u64, &str); 4] = [
    (DAY, "day"),
    (7 * DAY, "week"),
    (30 * DAY, "month"),
    (365 * DAY, "year"),
];

const DEFAULT_TTL: Duration = Duration::from_secs(60);

impl QuotaText {
    /// Returns the quota.
    pub const fn quota(&self) -> &Quota {
        &self.0
    }
}

wraps!(QuotaText, Quota);

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
            write!(f, "{} at once", quota.units())?;
            return match quota.period() {
                DEFAULT_TTL => Ok(()),
                ttl => write!(f, " ttl {}", super::DurationText::from(ttl)),
            };
        }
        if let Some(zone) = quota.time_zone() {
            let period = micros(quota.period());
            let mut nominal = CALENDAR.iter();
            let unit = nominal.find(|(length, _)| *length == period);
            let unit = unit.map_or("day", |(_, unit)| *unit);
            return write!(f, "{}/{unit} in {zone}", quota.units());
        }
        match in_one_unit(micros(quota.period())) {
            (1, unit) => write!(f, "{}/{unit}", quota.units())?,
            (count, unit) => write!(f, "{} per {count} {unit}s", quota.units())?,
        }
        // The first algorithm is the default.
        for (name, algorithm) in ALGORITHMS.iter().skip(1) {
            if *algorithm == quota.algorithm() {
                write!(f, " {name}")?;
            }
        }
        if has_given_burst(quota) {
            let word = if quota.algorithm() == Algorithm::LeakyBucket {
                "queue"
            } else {
                "burst"
            };
            write!(f, " {word} {}", quota.capacity())?;
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
    "pattern": "^\\s*[0-9][0-9_]*\\s*((/|[pP][eE][rR] )\\s*([0-9][0-9_]*\\s*)?[a-zA-Zµ]+|[aA][tT]\\s+[oO][nN][cC][eE])(\\s+[a-zA-Z0-9_µ/+-]+)*\\s*$",
    "examples": ["100/minute", "10/second burst 20", "5 per 15 minutes sliding_log", "1000/day fixed_window offset 6h", "10000/month in Europe/Berlin", "2 at once"]
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
            ("10000/month", Quota::per_month(10_000)),
            ("1 per 365 days", Quota::per_year(1)),
            ("5/year", Quota::per_year(5)),
            ("2 at once", Quota::concurrent(2)),
            (
                "2 AT  once ttl 5 minutes",
                Quota::concurrent(2).ttl(core::time::Duration::from_secs(300)),
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
    #[cfg(feature = "calendar")]
    fn calendar_quotas_print_and_read_back() {
        for (text, quota) in [
            ("5/day in UTC", Quota::per_day(5).calendar("UTC")),
            (
                "5/week in Asia/Seoul",
                Quota::per_week(5).calendar("Asia/Seoul"),
            ),
            (
                "10000/month in Europe/Berlin",
                Quota::per_month(10_000).calendar("Europe/Berlin"),
            ),
            (
                "1/year in Etc/GMT+3",
                Quota::per_year(1).calendar("Etc/GMT+3"),
            ),
        ] {
            let quota = QuotaText::from(quota.unwrap());
            assert_eq!(quota.to_string(), text);
            assert_eq!(text.parse(), Ok(quota));
            assert_eq!(text.to_uppercase().parse(), Ok(quota), "{text}");
        }
        let spelt = "5/month fixed_window in utc".parse::<QuotaText>().unwrap();
        assert_eq!(spelt.to_string(), "5/month in UTC");
    }

    #[test]
    #[cfg(not(feature = "calendar"))]
    fn calendar_quota_names_missing_feature() {
        let error = "5/month in UTC".parse::<QuotaText>().unwrap_err();
        assert!(
            error.to_string().contains("feature \"calendar\""),
            "{error}"
        );
    }

    #[test]
    fn concurrency_limits_print_and_read_back() {
        for text in ["2 at once", "10000 at once ttl 5m", "1 at once ttl 1s500ms"] {
            let quota = text.parse::<QuotaText>().unwrap();
            assert_eq!(quota.to_string(), text);
        }
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
            "0 at once",
            "2 at",
            "2 atonce",
            "2 at once burst 3",
            "2 at once ttl",
            "2 at once ttl 1ms",
            "20000 at once",
            "5/month in",
            "5/month in Mars/Phobos",
            "5/month in Etc/Unknown",
            "5/hour in UTC",
            "5 per 2 months in UTC",
            "5/month burst 9 in UTC",
            "5/month gcra in UTC",
            "5/month token_bucket in UTC",
            "5/day in UTC offset 6h",
            "5/day fixed_window from_first_request in UTC",
        ] {
            assert!(text.parse::<QuotaText>().is_err(), "{text}");
        }
    }
}
