//! Tests that the cases find mistakes, with stores that have one mistake each.

use tower_quota_core::{Charge, MemoryStore, Operation, Store};

use crate::conformance::Capability;
use crate::{ManualClock, block_on, conformance};

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
            (Mistake::ForgetsRefunds, Operation::Refund { .. }) => {
                self.sound.apply(operation, &peeks)
            }
            (Mistake::ChargesTheFirstLimitOfARefusal, Operation::Check) => {
                let decided = self.sound.check(charges);
                if decided
                    .clone()
                    .into_inner()
                    .is_ok_and(|decision| !decision.is_allowed())
                {
                    drop(self.sound.apply(Operation::Charge, &charges[..1]));
                }
                decided
            }
            (Mistake::ForgetsEverything, _) => {
                MemoryStore::with_clock(1, self.clock.clone()).apply(operation, charges)
            }
            _ => self.sound.apply(operation, charges),
        }
    }
}

/// Returns the cases that a store with this mistake fails.
fn failed(mistake: Mistake) -> Vec<(&'static str, String)> {
    let factory = async |clock: ManualClock, _| {
        let shown = match mistake {
            Mistake::RunsAMicrosecondFast => {
                let fast = ManualClock::default();
                fast.advance(std::time::Duration::from_micros(1));
                fast
            }
            _ => clock.clone(),
        };
        Faulty {
            sound: MemoryStore::with_clock(1_000, shown),
            clock,
            mistake,
        }
    };
    let run = |case| {
        block_on(conformance::run(case, &[], &factory))
            .err()
            .map(|failure| (case, failure.to_string()))
    };
    conformance::CASES
        .iter()
        .filter_map(|case| run(case))
        .collect()
}

fn fails(mistake: Mistake, case: &str) -> bool {
    failed(mistake).iter().any(|(failed, _)| *failed == case)
}

#[test]
fn sound_store_passes_every_case() {
    assert_eq!(failed(Mistake::None), []);
}

#[test]
fn each_mistake_fails_its_case() {
    assert!(fails(Mistake::ForgetsRefunds, "refund_restores_units"));
    assert!(fails(
        Mistake::ChargesTheFirstLimitOfARefusal,
        "one_key_is_charged_all_or_nothing"
    ));
    assert!(fails(
        Mistake::ForgetsEverything,
        "concurrent_checks_admit_the_quota"
    ));
    assert!(fails(Mistake::RunsAMicrosecondFast, "retry_after_is_exact"));
}

#[test]
fn failure_names_the_step() {
    let failures = failed(Mistake::ForgetsRefunds);
    let (_, text) = failures
        .iter()
        .find(|(case, _)| *case == "refund_restores_units")
        .unwrap();
    assert!(
        text.starts_with("at \"token bucket: the 5 are refunded\": "),
        "{text}"
    );
}

#[test]
fn case_of_lacking_capability_is_skipped() {
    let never =
        async |_: ManualClock, _: String| -> MemoryStore { panic!("no store should be made") };
    let result = block_on(conformance::run(
        "first_refusals_are_free",
        &[Capability::Penalties],
        never,
    ));
    assert!(result.is_ok());
}
