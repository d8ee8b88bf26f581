//! The suite finds faults: stores with one mistake each, and the cases that must notice.

use tower_quota_core::{Charge, MemoryStore, Operation, Store};

use crate::{ManualClock, block_on, conformance};

/// The memory store, but for what a mistake makes of its operations.
struct Faulty {
    sound: MemoryStore,
    clock: ManualClock,
    mistake: Mistake,
}

#[derive(Clone, Copy)]
enum Mistake {
    None,
    ForgetsRefunds,
    ChargesTheFirstLimitOfARefusal,
    ForgetsEverything,
    RunsAMicrosecondFast,
}

impl Store for Faulty {
    type Error = <MemoryStore as Store>::Error;
    type Future = <MemoryStore as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let peeks: Vec<Charge<'_>> = charges.iter().map(|charge| charge.cost(0)).collect();
        match (self.mistake, operation) {
            (Mistake::ForgetsRefunds, Operation::Refund { .. }) => self.sound.apply(operation, &peeks),
            (Mistake::ChargesTheFirstLimitOfARefusal, Operation::Check) => {
                let decided = self.sound.check(charges);
                if decided.clone().into_inner().is_ok_and(|decision| !decision.is_allowed()) {
                    drop(self.sound.apply(Operation::Charge, &charges[..1]));
                }
                decided
            }
            (Mistake::ForgetsEverything, _) => MemoryStore::with_clock(1, self.clock.clone()).apply(operation, charges),
            _ => self.sound.apply(operation, charges),
        }
    }
}

/// The cases that fail on a store with this mistake.
fn failed(mistake: Mistake) -> Vec<&'static str> {
    let factory = async |clock: ManualClock, _| {
        let told = match mistake {
            Mistake::RunsAMicrosecondFast => {
                let fast = ManualClock::default();
                fast.advance(std::time::Duration::from_micros(1));
                fast
            }
            _ => clock.clone(),
        };
        Faulty { sound: MemoryStore::with_clock(1_000, told), clock, mistake }
    };
    block_on(conformance::suite(factory)).err().map_or_else(Vec::new, |failures| failures.cases().collect())
}

#[test]
fn a_sound_store_passes() {
    assert_eq!(failed(Mistake::None), [""; 0]);
}

#[test]
fn each_mistake_is_noticed() {
    assert!(failed(Mistake::ForgetsRefunds).contains(&"a_refund_gives_back"));
    assert!(failed(Mistake::ChargesTheFirstLimitOfARefusal).contains(&"all_or_nothing_on_one_key"));
    assert!(failed(Mistake::ForgetsEverything).contains(&"exactly_the_quota"));
    assert!(failed(Mistake::RunsAMicrosecondFast).contains(&"retry_after_is_exact"));
}

#[test]
fn a_failure_names_case_and_step() {
    let forgetful = async |clock: ManualClock, _| Faulty {
        sound: MemoryStore::with_clock(1_000, clock.clone()),
        clock,
        mistake: Mistake::ForgetsRefunds,
    };
    let text = block_on(conformance::suite(forgetful)).unwrap_err().to_string();
    assert!(text.contains("a_refund_gives_back, at \"token bucket: the 5 come back\": "), "{text}");
}
