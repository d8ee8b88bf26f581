//! Errors of your configuration.

use core::fmt;
use core::time::Duration;

use crate::name::Name;
use crate::quota::algorithm::Algorithm;

/// An invalid quota or policy. The message names the value and tells you how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A quota of 0 units.
    ZeroUnits,
    /// A period below 1 ms, above 366 days, or with a fraction of a microsecond.
    Period(Duration),
    /// More than 10 million units per second.
    TooFast {
        /// The units per period.
        units: u64,
        /// The period.
        period: Duration,
    },
    /// A burst or a queue of 0.
    ZeroBurst,
    /// A burst that fills up within a microsecond.
    BurstTooSmall {
        /// The burst.
        burst: u64,
        /// The smallest burst for the rate.
        least: u64,
    },
    /// A burst on an algorithm with windows.
    BurstOnWindow(Algorithm),
    /// An offset, an anchor or a calendar on another algorithm than the fixed window, or two of them.
    NotAFixedWindow(Algorithm),
    /// A calendar on another period than a day, a week, 30 days or 365 days.
    NotACalendarPeriod(Duration),
    /// An unknown time zone.
    UnknownZone(String),
    /// A queue on another algorithm than the leaky bucket.
    NotALeakyBucket(Algorithm),
    /// An offset that is not shorter than the period.
    Offset {
        /// The offset.
        offset: Duration,
        /// The period.
        period: Duration,
    },
    /// A rate and a capacity that integers below 2^53 cannot count within 1 part per million.
    NotRepresentable {
        /// The units per period.
        units: u64,
        /// The period.
        period: Duration,
        /// The capacity.
        capacity: u64,
    },
    /// A sliding log or a concurrency limit of more than 10,000 units.
    LogTooLong {
        /// The units per window or at the same time.
        units: u64,
    },
    /// An expiry or a longest duration of holds on another algorithm than the concurrency limit.
    NotConcurrent(Algorithm),
    /// A concurrency limit with a quota per period, or the other way round.
    OtherCounting {
        /// The limit.
        limit: Name,
        /// The algorithm of the other quota.
        algorithm: Algorithm,
    },
    /// An expiry of holds below 100 ms, which is too short for renewals.
    ShortTtl(Duration),
    /// A quota divided among 0 instances.
    ZeroInstances,
    /// Less than one unit in 366 days for every instance.
    ShareTooSmall {
        /// The units per period.
        units: u64,
        /// The period.
        period: Duration,
        /// The instances that share the units.
        instances: u32,
    },
    /// A limit beyond those that stores decide in one step.
    TooManyLimits(Name),
    /// Two limits of a policy with the same name.
    DuplicateLimit(Name),
    /// Two names in a policy with the same stored number.
    CollidingNames(Name, Name),
    /// Different extractors of a policy with the same scope of keys.
    SharedScope(Name),
    /// Two header styles that write the same field.
    SharedField(&'static str),
    /// A limit's name that is empty, longer than 64 bytes or not printable ASCII.
    LimitName(Name),
    /// A cost above the capacity.
    CostAboveCapacity {
        /// The limit.
        limit: Name,
        /// The cost.
        cost: u64,
        /// The capacity.
        capacity: u64,
    },
    /// A settle rule on a concurrency limit.
    SettledHold(Name),
    /// A delay over a concurrency limit.
    DelayedHold(Name),
    /// A delay that grows by zero.
    ZeroStep(Name),
    /// A longest wait on an algorithm with windows.
    WaitOnWindow {
        /// The limit.
        limit: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// A text that is not a network of trusted proxies.
    Network(String),
    /// A number of proxies other than 1 to 32.
    ProxyHops(u8),
    /// An address prefix of 0 bits, or longer than the address.
    AddressPrefix {
        /// The requested bits.
        bits: u8,
        /// The bits of the address.
        most: u8,
    },
}

impl ConfigError {
    // A constant cannot format numbers.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::ZeroUnits => "a quota of 0 admits nothing: give at least 1 unit per period",
            Self::Period(_) => {
                "a period must be from 1 ms to 366 days, without a fraction of a microsecond"
            }
            Self::TooFast { .. } => "a quota may not exceed 10 million units per second",
            Self::ZeroBurst => {
                "a burst or a queue of 0 admits nothing: give at least 1, or leave it out"
            }
            Self::BurstOnWindow(_) => "a window has no burst: its limit is the units per window",
            Self::NotAFixedWindow(_) => {
                "only a fixed window takes an offset, an anchor or a calendar, and only one of them"
            }
            Self::NotALeakyBucket(_) => {
                "only a leaky bucket has a queue: call leaky_bucket() first, or give a burst"
            }
            Self::Offset { .. } => {
                "an offset must be shorter than its window, without a fraction of a microsecond"
            }
            Self::BurstTooSmall { .. } => {
                "this burst fills up within a microsecond at this rate: give a larger one"
            }
            Self::NotRepresentable { .. } => {
                "this rate with this capacity cannot be counted to within 1 part per million: give a smaller burst"
            }
            Self::LogTooLong { .. } => {
                "a sliding log or a concurrency limit keeps at most 10000 stamps: give fewer units"
            }
            Self::NotConcurrent(_) => "only a concurrency limit has holds that expire",
            Self::OtherCounting { .. } => {
                "another quota of a limit must count per period too, or in progress too"
            }
            Self::ShortTtl(_) => {
                "a hold needs a ttl of at least 100 ms, because it is renewed each third of the ttl"
            }
            Self::ZeroInstances => "a quota cannot be divided among 0 instances: give at least 1",
            Self::ShareTooSmall { .. } => {
                "less than one unit per 366 days for each instance: give more units"
            }
            _ => "invalid quota",
        }
    }
}

impl core::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroUnits | Self::ZeroBurst | Self::ZeroInstances => f.write_str(self.reason()),
            Self::Period(period) => {
                write!(
                    f,
                    "a period of {period:?} cannot be counted: give 1 ms to 366 days, without a fraction of a microsecond"
                )
            }
            Self::TooFast { units, period } => write!(
                f,
                "{units} units per {period:?} is more than 10 million per second: give fewer units or a longer period"
            ),
            Self::BurstTooSmall { burst, least } => {
                write!(
                    f,
                    "a burst of {burst} fills up within a microsecond at this rate: give at least {least}"
                )
            }
            Self::BurstOnWindow(algorithm) => write!(
                f,
                "a {algorithm} has no burst: its limit is the units per window; leave the burst out or use a bucket"
            ),
            Self::NotAFixedWindow(algorithm) => {
                write!(
                    f,
                    "the windows of this {algorithm} cannot be placed: only a fixed window takes an offset, an anchor or \
                     a calendar, and only one of them"
                )
            }
            Self::NotACalendarPeriod(period) => write!(
                f,
                "a period of {period:?} is no unit of the calendar: build the quota with per_day, per_week, per_month or \
                 per_year"
            ),
            Self::UnknownZone(zone) => write!(
                f,
                "{zone:?} is not a time zone: give a name of the IANA database, such as \"Europe/Berlin\" or \"UTC\""
            ),
            Self::NotALeakyBucket(algorithm) => {
                write!(
                    f,
                    "a {algorithm} has no queue: count by a leaky bucket, or give a burst"
                )
            }
            Self::Offset { offset, period } => {
                write!(
                    f,
                    "an offset of {offset:?} is not shorter than its window of {period:?}: give the remainder"
                )
            }
            Self::NotRepresentable {
                units,
                period,
                capacity,
            } => write!(
                f,
                "{units} units per {period:?} with a capacity of {capacity} cannot be counted to within 1 part per \
                 million: give a smaller burst, or count in larger units"
            ),
            Self::LogTooLong { units } => write!(
                f,
                "a sliding log or a concurrency limit of {units} units keeps too many stamps per client (at most \
                 10000): give fewer units, or use a sliding window counter"
            ),
            Self::NotConcurrent(algorithm) => write!(
                f,
                "a {algorithm} has no holds that expire: only a concurrency limit takes a `ttl` or a longest hold"
            ),
            Self::OtherCounting { limit, algorithm } => {
                let (own, example) = match algorithm {
                    Algorithm::Concurrent => ("per period", "100/minute"),
                    _ => ("requests in progress", "2 at once"),
                };
                write!(
                    f,
                    "the limit {limit:?} counts {own}, and a {algorithm} does not: give a quota such as {example:?}"
                )
            }
            Self::ShortTtl(ttl) => write!(
                f,
                "a hold with a ttl of {ttl:?} expires before its renewal, each third of the ttl: give at least 100 ms"
            ),
            Self::ShareTooSmall {
                units,
                period,
                instances,
            } => write!(
                f,
                "{units} units per {period:?} leave each of {instances} instances less than 1 in 366 days: give more \
                 units or fewer instances"
            ),
            Self::TooManyLimits(name) => write!(
                f,
                "limit {name:?} is the 33rd of a request, and stores decide at most 32 limits in one step: give it \
                 conditions, or combine limits"
            ),
            Self::DuplicateLimit(name) => {
                write!(
                    f,
                    "two limits are named {name:?}: give each a name of its own"
                )
            }
            Self::CollidingNames(one, other) => {
                write!(
                    f,
                    "the names {one:?} and {other:?} are stored under the same number: rename one"
                )
            }
            Self::SharedScope(scope) => write!(
                f,
                "different extractors of one policy make keys of one scope, {scope:?}: give each a scope of its own, or \
                 count by one of them"
            ),
            Self::SharedField(field) => {
                write!(
                    f,
                    "two of the header styles write {field}: choose one of them"
                )
            }
            Self::LimitName(name) => {
                write!(
                    f,
                    "the limit name {name:?} fits no header: give 1 to 64 printable ASCII characters"
                )
            }
            Self::CostAboveCapacity {
                limit,
                cost,
                capacity,
            } => write!(
                f,
                "a request costs {cost} but the limit {limit:?} never holds more than {capacity}: lower the cost or \
                 raise the quota"
            ),
            Self::SettledHold(limit) => write!(
                f,
                "the limit {limit:?} releases its units when a request is over: leave `settle` and `on_abandoned` out"
            ),
            Self::DelayedHold(limit) => write!(
                f,
                "the limit {limit:?} holds units, and cannot delay requests: leave `Over::Delay` out, or count requests"
            ),
            Self::ZeroStep(limit) => write!(
                f,
                "the limit {limit:?} delays requests by a step of zero: give the wait for each unit over the quota"
            ),
            Self::WaitOnWindow { limit, algorithm } => write!(
                f,
                "the limit {limit:?} cannot make requests wait, since a {algorithm} has no turns: leave `max_wait` out, \
                 or count in a bucket"
            ),
            Self::Network(text) => {
                write!(
                    f,
                    "{text:?} is not a network: give an address, or a network such as \"10.0.0.0/8\" or \"fd00::/8\""
                )
            }
            Self::ProxyHops(count) => {
                write!(f, "{count} proxies cannot be counted back: give 1 to 32")
            }
            Self::AddressPrefix { bits, most } => {
                write!(
                    f,
                    "{bits} bits of an address do not tell clients apart: give 1 to {most}"
                )
            }
        }
    }
}
