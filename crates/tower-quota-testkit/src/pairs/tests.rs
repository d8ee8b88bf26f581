//! Tests that the pairs find planted mistakes, by the fewest steps.

use std::time::Duration;

use tower_quota_core::{Charge, Clock, Decision, Key, Operation, Quota, Store, Timestamp};

use super::{Aspect, Effect, Fault, Pairs, Promise, World};
use crate::{ManualClock, ModelStore, block_on};

const TWO: Quota = Quota::new(2, Duration::from_secs(10));

#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    None,
    ForgetsRefunds,
    /// Each instance counts the whole quota.
    CountsAlone,
}

/// Two instances on one server, which may have a planted mistake.
struct Planted {
    clock: ManualClock,
    model: ModelStore,
    mistake: Mistake,
}

impl Planted {
    fn new(mistake: Mistake) -> Self {
        let clock = ManualClock::default();
        Self {
            model: ModelStore::with_clock(clock.clone()),
            clock,
            mistake,
        }
    }
}

struct Connection {
    model: ModelStore,
    mistake: Mistake,
}

impl Store for Connection {
    type Error = <ModelStore as Store>::Error;
    type Future = std::future::Ready<Result<Decision, Self::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        match operation {
            Operation::Refund { .. } if self.mistake == Mistake::ForgetsRefunds => {
                self.model.apply(Operation::Peek, charges)
            }
            operation => self.model.apply(operation, charges),
        }
    }
}

impl World for Planted {
    type Store = Connection;

    const FAULTS: &'static [Fault] = &[];

    async fn open(&mut self, _: usize) -> Connection {
        let model = match self.mistake {
            Mistake::CountsAlone => ModelStore::with_clock(self.clock.clone()),
            _ => self.model.clone(),
        };
        Connection {
            model,
            mistake: self.mistake,
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        self.clock.advance(span);
    }

    async fn fault(&mut self, _: Fault, _: &[Key<'_>]) -> Effect {
        Effect::Kept
    }
}

fn failure(pairs: &Pairs, mistake: Mistake) -> String {
    let failure = block_on(pairs.run(async || Planted::new(mistake)));
    failure.unwrap_err().to_string()
}

#[test]
fn model_keeps_every_promise() {
    let mut pairs = Pairs::new(TWO);
    pairs.steps = 2;
    block_on(pairs.run(async || Planted::new(Mistake::None))).unwrap();
    pairs.promise_all(Promise::bounded("nothing"));
    block_on(pairs.run(async || Planted::new(Mistake::None))).unwrap();
}

#[test]
fn difference_from_model_is_found_by_fewest_steps() {
    let mut pairs = Pairs::new(TWO);
    pairs.aspects = vec![Aspect::Refunded];
    let found = failure(&pairs, Mistake::ForgetsRefunds);
    let steps = "at \"[Refunded, Refunded] OneCharge: [Check { instance: 0, client: 0 }]\"";
    assert!(found.contains(steps), "{found}");
}

#[test]
fn units_above_bound_are_found_by_fewest_steps() {
    let mut pairs = Pairs::new(TWO);
    pairs.aspects = vec![Aspect::Checked];
    pairs.promise_all(Promise::bounded("nothing"));
    let found = failure(&pairs, Mistake::CountsAlone);
    let steps = "[Check { instance: 0, client: 0 }, Check { instance: 1, client: 0 }]\": the admitted units exceed";
    assert!(found.contains(steps), "{found}");
    pairs.promise_all(Promise::Bounded {
        quotas: 2,
        excludes_forced: false,
        by: "one quota for each instance",
    });
    block_on(pairs.run(async || Planted::new(Mistake::CountsAlone))).unwrap();
}
