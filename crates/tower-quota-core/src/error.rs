//! Configuration errors.

use core::fmt;
use core::time::Duration;

use crate::name::Name;
use crate::quota::algorithm::Algorithm;

/// An invalid quota or policy, found when it is built. The message names the value and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A quota of 0 units per period.
    ZeroUnits,
    /// A period shorter than 1 ms, longer than 366 days, or with a fraction of a microsecond.
    Period(Duration),
    /// More than 10 million units per second.
    TooFast {
        /// Units per period.
        units: u64,
        /// The period.
        period: Duration,
    },
    /// A burst or a queue of 0: no request could ever pass.
    ZeroBurst,
    /// A burst that fills up within a microsecond, so that the rate could never be reached.
    BurstTooSmall {
        /// The burst.
        burst: u64,
        /// The least that this rate needs.
        least: u64,
    },
    /// A burst on an algorithm that has windows instead of a bucket.
    BurstOnWindow(Algorithm),
    /// An offset, an anchor or a calendar on an algorithm other than the fixed window, or a calendar with one of the
    /// others.
    NotAFixedWindow(Algorithm),
    /// A calendar on a period that is not a day, a week, a month of 30 days or a year of 365 days.
    NotACalendarPeriod(Duration),
    /// A text that names no time zone.
    UnknownZone(String),
    /// A queue on an algorithm other than the leaky bucket.
    NotALeakyBucket(Algorithm),
    /// An offset that is not shorter than the period.
    Offset {
        /// The offset.
        offset: Duration,
        /// The window it should shift.
        period: Duration,
    },
    /// The rate and this capacity cannot both be held in integers below 2^53 to within 1 part per million.
    NotRepresentable {
        /// Units per period.
        units: u64,
        /// The period.
        period: Duration,
        /// Units that may pass at once.
        capacity: u64,
    },
    /// A sliding log of more stamps, or a concurrency limit of more holds, than a store should keep for one client.
    LogTooLong {
        /// Units per window, or at the same time.
        units: u64,
    },
    /// An expiry of holds on an algorithm other than the concurrency limit.
    NotConcurrent(Algorithm),
    /// A quota to be divided among 0 instances.
    ZeroInstances,
    /// A quota of which each instance would get less than one unit in 366 days.
    ShareTooSmall {
        /// Units per period.
        units: u64,
        /// The period.
        period: Duration,
        /// Instances that would share them.
        instances: u32,
    },
    /// Two limits of one policy with the same name.
    DuplicateLimit(Name),
    /// Two different names of one policy that share a stored number. They name limits or scopes of keys.
    CollidingNames(Name, Name),
    /// Different extractors of one policy whose keys have the same scope. Their keys could share counters.
    SharedScope(Name),
    /// A penalty on a limit whose requests without a key share a counter by default.
    PenaltyOnSharedCounter(Name),
    /// Two styles of header fields that both write this field.
    SharedField(&'static str),
    /// A limit's name that no header can carry: empty, longer than 64 bytes or not printable ASCII.
    LimitName(Name),
    /// A cost that the limit's capacity can never cover.
    CostAboveCapacity {
        /// The limit.
        limit: Name,
        /// The cost of the request.
        cost: u64,
        /// The capacity of the limit.
        capacity: u64,
    },
    /// A longest wait on a limit that counts in windows, which make no request wait.
    WaitOnWindow {
        /// The limit.
        limit: Name,
        /// The algorithm of its quota.
        algorithm: Algorithm,
    },
    /// A text that is not a network of trusted proxies.
    Network(String),
    /// A number of proxies that is 0 or more than 32.
    ProxyHops(u8),
    /// A prefix of addresses that is 0 or longer than they are.
    AddressPrefix {
        /// The bits asked for.
        bits: u8,
        /// The bits that such an address has.
        most: u8,
    },
}

impl ConfigError {
    /// Returns the message of a panic: a constant cannot format numbers, but the compiler points at them.
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
                "a {algorithm} has no holds that expire: only a concurrency limit takes a `ttl`"
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
            Self::PenaltyOnSharedCounter(limit) => write!(
                f,
                "the penalty of \"{limit}\" would let one client without a key block all others without one: choose a key \
                 that is always there, as by `.or(key::client_ip())`, or say `.when_missing(..)`"
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
