//! The script and the model in `tollgate-core` agree, step by step, in every field.
//!
//! `TOLLGATE_CASES=20000 cargo test -p tollgate-redis --release --test differential` runs longer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
mod plan;

use std::cell::Cell;
use std::time::Duration;

use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestCaseResult, TestRunner};
use tokio::runtime::Runtime;
use tollgate_core::{Algorithm, Charge, Decision, Key, Operation, Outcome, Quota, Store, Subject, Timestamp, decide};
use tollgate_redis::RedisStore;
use tollgate_testkit::{ManualClock, RedisServer};

use self::plan::{Cost, Deed, KEYS, NAMES, NOW, Passing, Plan, Step, Wish, plan};

const REGRESSIONS: &str = "tests/differential/regressions.txt";

#[test]
fn the_script_agrees_with_the_model() {
    let bench = Bench::new();
    let cases = std::env::var("TOLLGATE_CASES").ok().map_or(400, |cases| cases.parse().unwrap());
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        ..Config::default()
    });
    if let Err(error) = runner.run(&plan(), |plan| bench.run(&plan)) {
        panic!("{error}");
    }
}

#[test]
fn the_longest_debts_are_cut_alike() {
    let bench = Bench::new();
    for algorithm in Algorithm::ALL {
        let quota = Quota::per_minute(10).try_algorithm(algorithm).unwrap();
        // All that can be owed, and all of it but a little given back.
        let owed = if algorithm.is_bucket() { quota.capacity() } else { 1 << 51 };
        let steps = vec![
            Step::on_first(Passing::Micros(0), Deed::Charge, u64::MAX),
            Step::on_first(Passing::Micros(0), Deed::Refund(0), owed - 5),
            Step::on_first(Passing::Micros(0), Deed::Check, 3),
        ];
        bench.run(&Plan { start: NOW, quotas: vec![quota], steps }).unwrap();
    }
}

#[test]
fn a_log_that_never_empties_counts_on() {
    let bench = Bench::new();
    let quotas = vec![Quota::per_minute(10).sliding_log()];
    // Its running total passes 2^53 after a dozen windows.
    let steps = [1 << 51, 5, 5].into_iter().cycle().take(60);
    let steps = steps.map(|cost| Step::on_first(Passing::Share(600, 0), Deed::Charge, cost)).collect();
    bench.run(&Plan { start: NOW, quotas, steps }).unwrap();
}

#[test]
fn a_refund_reaches_back_to_the_first_instant_of_the_window_before() {
    let bench = Bench::new();
    let quotas = vec![Quota::per_minute(10).sliding_window()];
    let steps = vec![
        Step::on_first(Passing::Micros(0), Deed::Check, 4),
        Step::on_first(Passing::Micros(60_000_000), Deed::Refund(0), 3),
        Step::on_first(Passing::Micros(0), Deed::Check, 9),
    ];
    bench.run(&Plan { start: NOW - NOW % 60_000_000, quotas, steps }).unwrap();
}

#[test]
fn the_epoch_cuts_the_first_window_off_alike() {
    let bench = Bench::new();
    let quotas = vec![Quota::per_minute(10).fixed_window().offset(Duration::from_secs(30))];
    let steps = vec![
        Step::on_first(Passing::Micros(0), Deed::Check, 10),
        Step::on_first(Passing::Micros(5), Deed::Check, 1),
        Step::on_first(Passing::Micros(0), Deed::Refund(1), 2),
        Step::on_first(Passing::Back(1_005), Deed::RefundAt(0), 2),
        Step::on_first(Passing::Micros(0), Deed::Check, 5),
        Step::on_first(Passing::Promise(-1), Deed::Check, 5),
        Step::on_first(Passing::Promise(0), Deed::Check, 5),
    ];
    bench.run(&Plan { start: 1_000, quotas, steps }).unwrap();
}

/// A server, and a store in it that lives by a clock.
struct Bench {
    server: RedisServer,
    runtime: Runtime,
    clock: ManualClock,
    store: RedisStore,
    /// Plans and steps run so far. Each run has keys of its own.
    runs: Cell<usize>,
    steps: Cell<usize>,
}

impl Bench {
    fn new() -> Self {
        let server = RedisServer::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let clock = ManualClock::default();
        let store = runtime.block_on(common::options().clock(clock.clone()).connect(&server.url())).unwrap();
        Self { server, runtime, clock, store, runs: Cell::new(0), steps: Cell::new(0) }
    }

    fn run(&self, plan: &Plan) -> TestCaseResult {
        self.runs.set(self.runs.get() + 1);
        self.steps.set(self.steps.get() + plan.steps.len());
        self.runtime.block_on(run(plan, self.runs.get(), &self.store, &self.clock))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failed test has said what it has to say.
        if !std::thread::panicking() {
            let left = common::expiring_keys(&self.server).len();
            println!("{} steps in {} runs agree; {left} subjects left", self.steps.get(), self.runs.get());
        }
    }
}

async fn run(plan: &Plan, run: usize, store: &RedisStore, clock: &ManualClock) -> TestCaseResult {
    let keys = KEYS.map(|key| common::user(&format!("{key} of run {run}")));
    let mut subjects: [Subject; KEYS.len()] = Default::default();
    let mut past: Vec<Decision> = Vec::new();
    let mut now = plan.start;

    for (i, step) in plan.steps.iter().enumerate() {
        now = later(now, &step.passing, step.charges.first().map(|wish| &plan.quotas[wish.quota]), past.last());
        clock.set(Timestamp::from_micros(now));
        let operation = match step.deed {
            Deed::Check => Operation::Check,
            Deed::Charge => Operation::Charge,
            Deed::Refund(ago) => match past.iter().rev().nth(ago) {
                Some(decision) => Operation::Refund { taken_at: decision.at() },
                None => Operation::Check,
            },
            Deed::RefundAt(micros) => Operation::Refund { taken_at: Timestamp::from_micros(micros) },
            Deed::Reset => Operation::Reset,
        };
        let charges: Vec<Charge<'_>> = step.charges.iter().map(|wish| charge(wish, plan, &keys)).collect();

        let expected = decide_by_model(operation, &charges, &step.charges, now, &mut subjects);
        let decided = store.apply(operation, &charges).await.map_err(|error| TestCaseError::fail(error.to_string()))?;
        if decided != expected {
            return Err(TestCaseError::fail(format!("step {i}\n the script: {decided:#?}\n the model: {expected:#?}")));
        }
        past.push(decided);
    }
    Ok(())
}

fn decide_by_model(
    operation: Operation,
    charges: &[Charge<'_>],
    wishes: &[Wish],
    now: u64,
    subjects: &mut [Subject; KEYS.len()],
) -> Decision {
    // The model's instant is that of the subjects a request counts; others have no say.
    let mut counted: Vec<usize> = wishes.iter().map(|wish| wish.key).collect();
    counted.sort_unstable();
    counted.dedup();
    let mut taken: Vec<Subject> = counted.iter().map(|&key| std::mem::take(&mut subjects[key])).collect();
    let decision =
        decide(operation, charges, Timestamp::from_micros(now), &mut taken.iter_mut().collect::<Vec<_>>(), |charge| {
            counted.iter().position(|&key| key == wishes[charge].key).unwrap()
        });
    for (key, subject) in counted.into_iter().zip(taken) {
        subjects[key] = subject;
    }
    decision
}

fn charge<'a>(wish: &Wish, plan: &'a Plan, keys: &'a [Key<'static>]) -> Charge<'a> {
    let quota = &plan.quotas[wish.quota];
    let cost = match wish.cost {
        Cost::Units(units) => units,
        Cost::Share(thousandths) => {
            u64::try_from(u128::from(quota.capacity()) * u128::from(thousandths) / 1_000).unwrap()
        }
        Cost::Above(units) => quota.capacity().saturating_add(units),
    };
    let mut charge = Charge::new(NAMES[wish.name], quota, &keys[wish.key]).cost(cost);
    if let Some(micros) = wish.patience {
        charge = charge.patience(Duration::from_micros(micros));
    }
    if wish.counts_refusals { charge.count_refusals() } else { charge }
}

fn later(now: u64, passing: &Passing, quota: Option<&Quota>, last: Option<&Decision>) -> u64 {
    let promised = match last.map(Decision::outcome) {
        Some(Outcome::Refuse(span) | Outcome::Wait(span)) => span,
        _ => Duration::ZERO,
    };
    let reset = last.and_then(|last| last.standings().first()).map_or(Duration::ZERO, |first| first.reset_after);
    let then = match *passing {
        Passing::Micros(micros) => now + micros,
        Passing::Back(micros) => now.saturating_sub(micros),
        Passing::Share(thousandths, micros) => {
            let horizon = quota.map_or(Duration::ZERO, Quota::horizon).as_micros();
            let share = u64::try_from(horizon * u128::from(thousandths) / 1_000).unwrap();
            (now + share).saturating_add_signed(micros)
        }
        Passing::Promise(micros) => last.map_or(now, |last| due(last, promised, micros)),
        Passing::Reset(micros) => last.map_or(now, |last| due(last, reset, micros)),
    };
    // The year 2112, where the script's clock ends.
    then.min(1 << 52)
}

fn due(decision: &Decision, span: Duration, micros: i64) -> u64 {
    (decision.at() + span).as_micros().saturating_add_signed(micros)
}
