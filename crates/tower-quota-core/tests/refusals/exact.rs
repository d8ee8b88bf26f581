//! Tests on random traces that each refusal from memory agrees with the store.

use std::time::Duration;

use tower_quota_core::{
    Algorithm, Charge, Clock, Key, Operation, Outcome, Penalty, Quota, Store, Timestamp,
};
use tower_quota_testkit::block_on;

use crate::{Setting, client};

/// The number of steps of all traces together.
const STEPS: u32 = 1_000_000;
const STEPS_PER_TRACE: u32 = 250;
const LIMITS: [&str; 3] = ["burst", "minute", "day"];

/// Generates random numbers (SplitMix64). A million steps of a strategy would take minutes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap())).unwrap()
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn quota(&mut self) -> Quota {
        let period = [1_000, 77_777, 1_000_000, 60_000_000][self.index(4)];
        let quota = Quota::new(1 + self.below(9), Duration::from_micros(period));
        let algorithm = Algorithm::ALL[self.index(Algorithm::ALL.len())];
        let quota = match algorithm {
            // Keep the quota, because each hold moves the instant of the next decision ahead of the
            // clock.
            Algorithm::Concurrent => quota,
            _ => quota.try_algorithm(algorithm).unwrap_or(quota),
        };
        if algorithm == Algorithm::FixedWindow && self.one_in(2) {
            quota.from_first_request()
        } else {
            quota
        }
    }
}

/// A trace of random operations, and counts of the cache's answers.
struct Trace {
    random: Random,
    setting: Setting,
    quotas: Vec<Quota>,
    last: Vec<Taken>,
    answered: u64,
    /// The latest instant so far. At an earlier instant, a store decides at the instant of the last
    /// change.
    latest: Timestamp,
}

/// An admitted check that has a refund left.
type Taken = (usize, usize, u64, Timestamp);

impl Trace {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let setting = Setting::new();
        let quotas = (0..LIMITS.len() * 2).map(|_| random.quota()).collect();
        Self {
            random,
            setting,
            quotas,
            last: Vec::new(),
            answered: 0,
            latest: Timestamp::EPOCH,
        }
    }

    fn pause(&mut self, retry: Option<Duration>) {
        let clock = &self.setting.clock;
        match (self.random.below(16), retry) {
            (0..4, _) => {}
            (4..8, _) => clock.advance(Duration::from_micros(self.random.below(50_000))),
            (8..10, _) => clock.advance(Duration::from_micros(self.random.below(2_000_000))),
            (10..14, Some(retry)) => {
                // Move to a microsecond before, at, or after the promised instant.
                clock.advance(
                    (retry + Duration::from_micros(self.random.below(3)))
                        .saturating_sub(Duration::from_micros(1)),
                );
            }
            (14, _) if self.random.one_in(20) => clock.set(Timestamp::from_micros(
                clock.now().as_micros() - self.random.below(3_000_000),
            )),
            _ => clock.advance(Duration::from_micros(self.random.below(10))),
        }
    }

    fn step(&mut self, retry: Option<Duration>) -> Option<Duration> {
        self.pause(retry);
        self.latest = self.latest.max(self.setting.clock.now());
        let keys: Vec<Key<'_>> = (0..2).map(client).chain([Key::EVERYONE]).collect();
        let (key, limit) = (self.random.index(3), self.random.index(3));
        // Use the limit's own quota mostly, and sometimes another quota.
        let quota_of = |random: &mut Random, limit: usize| {
            limit + if random.one_in(40) { LIMITS.len() } else { 0 }
        };
        let quota = self.quotas[quota_of(&mut self.random, limit)];
        let cost = if self.random.one_in(3) {
            self.random.below(6)
        } else {
            1
        };
        let mut charge = Charge::new(LIMITS[limit], &quota, &keys[key]).cost(cost);
        match self.random.below(12) {
            0 => charge = charge.at_most(),
            1 => charge = charge.shadow(),
            2 => charge = charge.max_wait(Duration::from_micros(self.random.below(200_000))),
            3 => charge = charge.refundable(),
            _ => {}
        }
        let operation = match self.random.below(30) {
            0 => Operation::Reset,
            1 => Operation::Charge,
            2 => Operation::Peek,
            3 | 4 if !self.last.is_empty() => {
                let position = self.random.index(self.last.len());
                let (limit, key, units, taken_at) = self.last.swap_remove(position);
                let charge =
                    Charge::new(LIMITS[limit], &self.quotas[limit], &keys[key]).cost(units);
                self.setting
                    .apply(Operation::Refund { taken_at }, &[charge]);
                return None;
            }
            _ => Operation::Check,
        };
        let second_quota = self.quotas[quota_of(&mut self.random, (limit + 1) % 3)];
        let second = Charge::new(
            LIMITS[(limit + 1) % 3],
            &second_quota,
            &keys[self.random.index(3)],
        );
        let charges = [charge, second];
        let charges = if self.random.one_in(3) {
            &charges[..]
        } else {
            &charges[..1]
        };
        if operation != Operation::Check {
            self.setting.apply(operation, charges);
            return None;
        }
        self.check(charges, limit, key)
    }

    fn check(&mut self, charges: &[Charge<'_>], limit: usize, key: usize) -> Option<Duration> {
        let now = self.setting.clock.now();
        // Peek for the store's answer. Leave out costs of 0, which are never refused, because a
        // peek counts them as 1.
        let paying: Vec<Charge<'_>> = charges
            .iter()
            .copied()
            .filter(|charge| charge.units() > 0)
            .collect();
        let Ok(expected) = self
            .setting
            .store
            .memory
            .apply(Operation::Peek, &paying)
            .into_inner();
        let (decision, was_asked) = self.setting.watch(charges);
        if was_asked {
            if decision.is_allowed() && charges.len() == 1 && decision.statuses()[0].taken > 0 {
                self.last
                    .push((limit, key, decision.statuses()[0].taken, decision.at()));
            }
            return decision.retry_after();
        }
        self.answered += 1;
        // At an earlier instant, a store decides at the last change of any key of the request.
        assert!(
            !expected.is_allowed() || now < self.latest,
            "a false refusal: {decision:?} instead of {expected:?} to {charges:?}"
        );
        // The store may know another refusing limit of the request.
        let (known, longest) = (decision.retry_after(), expected.retry_after());
        let is_exact = expected.outcome() == Outcome::Never || known <= longest;
        assert!(
            is_exact || now < self.latest,
            "{decision:?} instead of {expected:?} to {charges:?}"
        );
        assert_eq!(decision.statuses().len(), charges.len());
        known
    }
}

#[test]
fn million_random_steps_have_no_false_refusal() {
    let mut answered = 0;
    for seed in 0..u64::from(STEPS / STEPS_PER_TRACE) {
        let mut trace = Trace::new(seed);
        let mut retry = None;
        for _ in 0..STEPS_PER_TRACE {
            retry = trace.step(retry);
        }
        answered += trace.answered;
    }
    println!("{answered} of {STEPS} steps were answered from memory");
    assert!(answered > u64::from(STEPS / 100));
}

#[test]
fn penalised_clients_have_no_false_refusal() {
    let penalty = Penalty::after(2)
        .step(Duration::from_millis(40))
        .most(Duration::from_secs(1));
    let mut random = Random(7);
    let (setting, direct) = (Setting::new(), Setting::new());
    let (quota, key) = (Quota::new(3, Duration::from_millis(300)), client(1));
    let charge = Charge::new("limit", &quota, &key).penalty(&penalty);
    for _ in 0..20_000 {
        let pause = Duration::from_micros(random.below(60_000));
        setting.clock.advance(pause);
        direct.clock.advance(pause);
        let Ok(peeked) = setting
            .store
            .memory
            .apply(Operation::Peek, &[charge])
            .into_inner();
        let (decision, was_asked) = setting.watch(&[charge]);
        // The store without a cache has counted strikes that the other store has yet to count.
        let strict = block_on(direct.store.check(&[charge])).unwrap();
        assert!(was_asked || !peeked.is_allowed() || !strict.is_allowed());
        assert!(!was_asked || decision.is_allowed() == peeked.is_allowed());
    }
    assert!(setting.cache.stats().answered > 100);
    assert!(
        block_on(setting.store.check(&[charge.cost(0)]))
            .unwrap()
            .is_allowed()
    );
}
