//! Draws random quotas, and random requests that often reach their limits.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use tower_quota_core::{Algorithm, Charge, Decision, Entry, Key, Operation, Quota, Timestamp};

use super::magnitude;

const MILLISECOND: u64 = 1_000;
const YEAR: u64 = 366 * 86_400_000_000;
/// The maximum units of a log. A log keeps a stamp per unit, so more would only be slow.
const LONG_LOG: u64 = 2_000;

pub(crate) static KEY: Key<'static> = Key::EVERYONE;

/// Returns any valid quota of units per period, by any algorithm.
pub(crate) fn quota() -> impl Strategy<Value = Quota> {
    let rates = Algorithm::ALL
        .into_iter()
        .filter(|one| *one != Algorithm::Concurrent);
    proptest::sample::select(rates.collect::<Vec<_>>()).prop_flat_map(quota_by)
}

/// Returns any valid quota by one algorithm.
///
/// Rates are from 1 per 366 days to 10 million a second, periods from 1 ms to 366 days.
pub(crate) fn quota_by(algorithm: Algorithm) -> impl Strategy<Value = Quota> {
    let period = prop_oneof![
        proptest::sample::select(vec![
            MILLISECOND,
            1_000_000,
            60_000_000,
            3_600_000_000,
            86_400_000_000,
            YEAR
        ]),
        magnitude(MILLISECOND, YEAR),
    ];
    period
        .prop_flat_map(move |period| {
            let most = if algorithm == Algorithm::SlidingLog {
                LONG_LOG.min(period * 10)
            } else {
                period * 10
            };
            let units = prop_oneof![magnitude(1, most.min(20)), magnitude(1, most)];
            let burst = proptest::option::of(prop_oneof![magnitude(1, 20), magnitude(1, 1 << 40)]);
            (Just(period), units, burst, any::<u64>(), 0..3_u8)
        })
        .prop_filter_map(
            "a quota that can be counted",
            move |(period, units, burst, noise, anchor)| {
                let quota = Quota::try_new(units, Duration::from_micros(period)).ok()?;
                match (algorithm, burst) {
                    (Algorithm::FixedWindow, _) => {
                        let window = quota.fixed_window();
                        Some(match anchor {
                            0 => window,
                            1 => window.offset(Duration::from_micros(noise % period)),
                            _ => window.from_first_request(),
                        })
                    }
                    (_, Some(burst)) if algorithm.is_bucket() => {
                        quota.try_burst(burst).ok()?.try_algorithm(algorithm).ok()
                    }
                    _ => quota.try_algorithm(algorithm).ok(),
                }
            },
        )
}

/// The pause before a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    /// A fixed time, in microseconds.
    Micros(u64),
    /// A share of the quota's window, in parts of 2^16.
    Share(u32),
    /// The wait of the last refusal, and this many microseconds more.
    Retry(i8),
    /// The reset of the last decision, and this many microseconds more.
    Reset(i8),
}

/// A request, as the pause before it and the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) pause: Pause,
    pub(crate) cost: Cost,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    /// This many units, up to the capacity.
    Units(u64),
    /// A share of the capacity in parts of 2^16, at least one unit.
    Share(u16),
    /// The remaining units of the last decision, and this many units more.
    Left(u64),
}

pub(crate) fn requests(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let pause = prop_oneof![
        3 => Just(Pause::Micros(0)),
        2 => magnitude(1, 10_000_000).prop_map(Pause::Micros),
        3 => (0..100_000_u32).prop_map(Pause::Share),
        4 => (-1..2_i8).prop_map(Pause::Retry),
        1 => (-1..2_i8).prop_map(Pause::Reset),
    ];
    let cost = prop_oneof![
        4 => (1..4_u64).prop_map(Cost::Units),
        3 => any::<u16>().prop_map(Cost::Share),
        3 => (0..2_u64).prop_map(Cost::Left),
    ];
    vec(
        (pause, cost).prop_map(|(pause, cost)| Request { pause, cost }),
        1..most,
    )
}

/// A run of requests on an entry of one limit.
pub(crate) struct Play {
    pub(crate) quota: Quota,
    pub(crate) entry: Entry,
    pub(crate) now: u64,
    last: Option<Decision>,
}

impl Play {
    /// Starts in November 2025, in the middle of every window.
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quota,
            entry: Entry::default(),
            now: 1_763_712_345_678_901,
            last: None,
        }
    }

    /// Moves the clock to a request. Returns its cost, at least 1 and at most the capacity.
    pub(crate) fn arrive(&mut self, request: Request) -> u64 {
        let status = self.last.as_ref().map(|decision| decision.statuses()[0]);
        let near = |span: Duration, by: i8| micros(span).saturating_add_signed(i64::from(by));
        self.now += match (request.pause, status) {
            (Pause::Micros(micros), _) => micros,
            (Pause::Share(share), _) => fraction(micros(self.quota.window()), share),
            (Pause::Retry(by), _) => self
                .last
                .as_ref()
                .and_then(Decision::retry_after)
                .map_or(0, |retry| near(retry, by)),
            (Pause::Reset(by), Some(status)) => near(status.reset_after(), by),
            (Pause::Reset(_), None) => 0,
        };
        let capacity = self.quota.capacity();
        let wanted = match request.cost {
            Cost::Units(units) => units,
            Cost::Share(share) => fraction(capacity, share.into()),
            Cost::Left(more) => status.map_or(capacity, |status| status.remaining()) + more,
        };
        wanted.clamp(1, capacity)
    }

    /// Returns the charge of a cost. The request waits only for its turn in a queue.
    pub(crate) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge::new("limit", &self.quota, &KEY).cost(cost)
    }

    pub(crate) fn check(&mut self, cost: u64) -> Decision {
        self.check_prepared(cost, false)
    }

    /// Checks a charge that may be prepared for its refund.
    pub(crate) fn check_prepared(&mut self, cost: u64, is_prepared: bool) -> Decision {
        let charge = Charge::new("limit", &self.quota, &KEY).cost(cost);
        let charge = if is_prepared {
            charge.refundable()
        } else {
            charge
        };
        let decision = self.entry.decide(
            Operation::Check,
            &[charge],
            Timestamp::from_micros(self.now),
        );
        self.last = Some(decision.clone());
        decision
    }

    /// Returns the answer to a check at another instant, and charges nothing.
    pub(crate) fn peek_at(&self, now: u64, charge: Charge<'_>) -> Decision {
        self.entry
            .clone()
            .decide(Operation::Check, &[charge], Timestamp::from_micros(now))
    }
}

pub(crate) fn micros(span: Duration) -> u64 {
    span.as_micros().try_into().unwrap()
}

/// Returns a share of a number, in parts of 2^16.
pub(crate) fn fraction(of: u64, share: u32) -> u64 {
    ((u128::from(of) * u128::from(share)) >> 16)
        .try_into()
        .unwrap()
}
