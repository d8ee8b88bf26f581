//! The memory store and the model agree, step by step, in every field: while limits of a key come and go, in any order and
//! any part of a policy, under quotas that change, in a narrow row, a wide one or none, and the table grows around them.

mod evictions;
mod plan;

use std::time::Duration;

use proptest::proptest;
use proptest::test_runner::{TestCaseError, TestCaseResult};
use tower_quota_core::{Charge, Decision, Entry, Key, MemoryStore, Name, Operation, Quota, Store, Timestamp, decide};
use tower_quota_testkit::{ManualClock, block_on};

use self::plan::{Cost, Deed, KEYS, LIMITS, Manners, Passing, Plan, Step, Wish, plan};

const CLIENT: Name = Name::new("client");
const NOW: u64 = 1_763_683_212_345_678;
/// Not soon full again.
const SLOW: Quota = Quota::new(1, Duration::from_secs(366 * 86_400));
/// More limits with their quotas than a table has numbers for.
const NUMBERS: u64 = 2_100;

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn memory_store_agrees_with_model(plan in plan()) {
        for capacity in [KEYS, 1_000, 100_000] {
            Run::new(&plan, capacity).run()?;
        }
    }
}

struct Run<'a> {
    plan: &'a Plan,
    clock: ManualClock,
    store: MemoryStore,
    keys: [Key<'static>; KEYS],
    entries: [Entry; KEYS],
    past: Vec<Decision>,
    now: u64,
    /// The latest instant so far.
    latest: u64,
    crowd: u64,
    capacity: u64,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, capacity: usize) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(NOW));
        let store = MemoryStore::with_clock(capacity, clock.clone());
        let key = |number| if number == KEYS - 1 { Key::EVERYONE } else { Key::number(CLIENT, number as u64) };
        let keys = std::array::from_fn(key);
        let (entries, past, capacity) = (Default::default(), Vec::new(), capacity as u64);
        Self { plan, clock, store, keys, entries, past, now: NOW, latest: NOW, crowd: 0, capacity }
    }

    fn run(mut self) -> TestCaseResult {
        if self.plan.numbers_are_used_up {
            self.use_up_the_numbers();
        }
        for (number, step) in self.plan.steps.iter().enumerate() {
            match step {
                Step::Ask(passing, deed, wishes) => {
                    self.pass(*passing);
                    self.ask(number, *deed, wishes)?;
                }
                Step::Crowd(others, limits) => self.come(*others, *limits),
            }
        }
        for key in 0..KEYS {
            let peeks: Vec<Wish> = every_limit(key).collect();
            self.ask(self.plan.steps.len(), Deed::Check, &peeks)?;
        }
        assert_eq!(self.store.evicted(), 0);
        let known = self.entries.iter().filter(|entry| entry.full_at().as_micros() > self.latest).count();
        assert!(self.store.len() >= known);
        Ok(())
    }

    fn ask(&mut self, number: usize, deed: Deed, wishes: &[Wish]) -> TestCaseResult {
        let operation = match deed {
            Deed::Check => Operation::Check,
            Deed::Charge => Operation::Charge,
            Deed::Refund(ago) => match self.past.iter().rev().nth(ago) {
                Some(decision) => Operation::Refund { taken_at: decision.at() },
                None => Operation::Check,
            },
            Deed::Reset => Operation::Reset,
            Deed::Refuse => Operation::Refuse,
            Deed::Peek => Operation::Peek,
        };
        let charges: Vec<Charge<'_>> = wishes.iter().map(|wish| charge(self.plan, &self.keys, wish)).collect();
        let found = block_on(self.store.apply(operation, &charges)).unwrap();
        let takes_part = |key: &usize| wishes.iter().any(|wish| wish.key == *key);
        let named: Vec<usize> = (0..KEYS).filter(takes_part).collect();
        let mut entries: Vec<&mut Entry> =
            self.entries.iter_mut().enumerate().filter(|(key, _)| takes_part(key)).map(|(_, entry)| entry).collect();
        let entry_of = |wish: usize| named.iter().position(|&key| key == wishes[wish].key).unwrap();
        let expected = decide(operation, &charges, Timestamp::from_micros(self.now), &mut entries, entry_of);
        if found != expected {
            let message =
                format!("step {number}, {} places\n the store: {found:#?}\n the model: {expected:#?}", self.capacity);
            return Err(TestCaseError::fail(message));
        }
        self.past.push(found);
        Ok(())
    }

    fn pass(&mut self, passing: Passing) {
        let last = self.past.last();
        let retry = last.and_then(Decision::retry_after);
        let reset = last.and_then(|last| last.statuses().first()).map(|first| first.reset_after());
        let due = |span: Option<Duration>, by| {
            last.zip(span).map_or(self.now, |(last, span)| (last.at() + span).as_micros().saturating_add_signed(by))
        };
        let then = match passing {
            Passing::Micros(micros) => self.now + micros,
            Passing::Back(micros) => self.now.saturating_sub(micros),
            Passing::Retry(by) => due(retry, by),
            Passing::Reset(by) => due(reset, by),
        };
        // An entry that was full at the latest instant may have been forgotten: not even a clock that runs backwards may
        // go to where it was not full.
        let full_at = self.entries.iter().map(|entry| entry.full_at().as_micros());
        self.now = then.max(full_at.filter(|full_at| *full_at <= self.latest).max().unwrap_or(0));
        self.latest = self.latest.max(self.now);
        self.clock.set(Timestamp::from_micros(self.now));
    }

    /// Others come and stay.
    fn come(&mut self, others: u64, limits: usize) {
        let others = others.min((self.capacity - KEYS as u64).saturating_sub(self.crowd));
        for other in self.crowd..self.crowd + others {
            let key = Key::number(Name::new("other"), other);
            let charges: Vec<Charge<'_>> =
                LIMITS[..limits].iter().map(|limit| Charge::new(*limit, &SLOW, &key)).collect();
            assert!(block_on(self.store.check(&charges)).unwrap().is_allowed());
        }
        self.crowd += others;
    }

    fn use_up_the_numbers(&self) {
        for units in 1..=NUMBERS {
            let quota = Quota::new(units, Duration::from_secs(86_400));
            let used = [Charge::new("used", &quota, &self.keys[0])];
            block_on(self.store.check(&used)).unwrap();
            block_on(self.store.apply(Operation::Reset, &used)).unwrap();
        }
    }
}

/// Returns a peek at each limit of a key.
fn every_limit(key: usize) -> impl Iterator<Item = Wish> {
    let (other_quota, cost, manners) = (None, Cost::Units(0), Manners::default());
    (0..LIMITS.len()).map(move |limit| Wish { limit, key, other_quota, cost, manners })
}

fn charge<'a>(plan: &'a Plan, keys: &'a [Key<'static>; KEYS], wish: &Wish) -> Charge<'a> {
    let quota = &plan.quotas[wish.other_quota.unwrap_or(wish.limit)];
    let cost = match wish.cost {
        Cost::Units(units) => units,
        Cost::Share(share) => u64::try_from((u128::from(quota.capacity()) * u128::from(share)) >> 15).unwrap(),
        Cost::Above(units) => quota.capacity() + units,
    };
    let mut charge = Charge::new(LIMITS[wish.limit], quota, &keys[wish.key]).cost(cost);
    if let Some(micros) = wish.manners.patience {
        charge = charge.patience(Duration::from_micros(micros));
    }
    if wish.manners.counts_refusals {
        charge = charge.count_refusals();
    }
    if wish.manners.is_shadow {
        charge = charge.shadow();
    }
    if wish.manners.is_at_most {
        charge = charge.at_most();
    }
    if wish.manners.is_penalised { charge.penalty(&plan.penalty) } else { charge }
}
