//! The script and the model in `tower-quota-core` agree, step by step, in every field.
//!
//! `TOWER_QUOTA_CASES=20000 cargo test -p tower-quota-redis --release --test differential` runs longer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
mod plan;
mod shelf;

use std::cell::Cell;
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestCaseResult, TestRunner};
use tokio::runtime::Runtime;
use tower_quota_core::{
    Algorithm, Charge, Decision, Entry, Key, LimitStatus, Operation, Outcome, Quota, Store, Timestamp, decide,
};
use tower_quota_testkit::{ManualClock, RedisServer};

use self::plan::{Cost, Deed, KEYS, NAMES, NOW, Passing, Plan, Step, Wish, plain_plan, plan};
use self::shelf::Shelves;

const ELSE: Quota = Quota::per_hour(1);
const REGRESSIONS: &str = "tests/differential/regressions.txt";

#[test]
fn the_script_agrees_with_the_model() {
    agrees(&plan());
}

#[test]
fn the_shorter_ways_agree_with_the_model() {
    agrees(&plain_plan());
}

fn agrees(plans: &impl Strategy<Value = Plan>) {
    let bench = Bench::new();
    let cases = std::env::var("TOWER_QUOTA_CASES").ok().map_or(400, |cases| cases.parse().unwrap());
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        ..Config::default()
    });
    if let Err(error) = runner.run(plans, |plan| bench.run(&plan)) {
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
        bench.run(&plan_of(NOW, vec![quota], steps)).unwrap();
    }
}

#[test]
fn a_log_that_never_empties_counts_on() {
    let bench = Bench::new();
    let quotas = vec![Quota::per_minute(10).sliding_log()];
    // Its running total passes 2^53 after a dozen windows.
    let steps = [1 << 51, 5, 5].into_iter().cycle().take(60);
    let steps = steps.map(|cost| Step::on_first(Passing::Share(600, 0), Deed::Charge, cost)).collect();
    bench.run(&plan_of(NOW, quotas, steps)).unwrap();
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
    bench.run(&plan_of(NOW - NOW % 60_000_000, quotas, steps)).unwrap();
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
    bench.run(&plan_of(1_000, quotas, steps)).unwrap();
}

fn plan_of(start: u64, quotas: Vec<Quota>, steps: Vec<Step>) -> Plan {
    Plan { start, quotas, penalties: Vec::new(), steps }
}

/// A server, and a clock that stores in it live by.
struct Bench {
    server: RedisServer,
    runtime: Runtime,
    clock: ManualClock,
    /// Plans and steps run so far.
    runs: Cell<usize>,
    steps: Cell<usize>,
}

impl Bench {
    fn new() -> Self {
        let server = RedisServer::start();
        // One thread: what is asked first is sent first.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = ManualClock::default();
        Self { server, runtime, clock, runs: Cell::new(0), steps: Cell::new(0) }
    }

    fn run(&self, plan: &Plan) -> TestCaseResult {
        self.runs.set(self.runs.get() + 1);
        self.steps.set(self.steps.get() + plan.steps.len());
        self.runtime.block_on(run(plan, self.runs.get(), &self.server.url(), &self.clock))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failed test has said what it has to say.
        if !std::thread::panicking() {
            let left = common::subjects(&self.server).len();
            println!("{} steps in {} runs agree; {left} subjects left", self.steps.get(), self.runs.get());
        }
    }
}

async fn run(plan: &Plan, run: usize, url: &str, clock: &ManualClock) -> TestCaseResult {
    // A minute that has begun has begun for all subjects of a store: each run has a store of its own.
    let options = common::options().clock(clock.clone()).prefix(format!("run:{run}"));
    let store = options.connect(url).await.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut model = Model::default();
    let mut past: Vec<Decision> = Vec::new();
    let mut now = plan.start;
    let mut rest = plan.steps.as_slice();

    while let [first, later_ones @ ..] = rest {
        let bursting = later_ones.iter().take_while(|step| step.joins_last).count();
        let burst;
        (burst, rest) = rest.split_at(1 + bursting);
        now = later(now, &first.passing, first.charges.first().map(|wish| &plan.quotas[wish.quota]), past.last());
        clock.set(Timestamp::from_micros(now));

        // One alone is decided by the script for lone decisions. Of several, none is: somebody else, at nobody's cost, is
        // alone. The first two find a free lane, and the others wait, and go in one call.
        let _alone =
            (burst.len() > 1).then(|| tokio::spawn(store.check(&[Charge::new("else", &ELSE, &Key::EVERYONE).cost(0)])));
        let expected: Vec<Decision> = burst.iter().map(|step| model.decide(step, plan, &past, now)).collect();
        let asked: Vec<_> = burst
            .iter()
            .map(|step| {
                let charges: Vec<Charge<'_>> =
                    step.charges.iter().map(|wish| charge(wish, plan, &model.keys)).collect();
                tokio::spawn(store.apply(operation(step, &past), &charges))
            })
            .collect();
        for (expected, asked) in expected.into_iter().zip(asked) {
            let decided = asked.await.unwrap().map_err(|error| TestCaseError::fail(error.to_string()))?;
            if decided != expected {
                let step = past.len();
                return Err(TestCaseError::fail(format!(
                    "step {step}\n the script: {decided:#?}\n the model: {expected:#?}"
                )));
            }
            past.push(decided);
        }
    }
    Ok(())
}

fn operation(step: &Step, past: &[Decision]) -> Operation {
    match step.deed {
        Deed::Check => Operation::Check,
        Deed::Charge => Operation::Charge,
        Deed::Refund(ago) => match past.iter().rev().nth(ago) {
            Some(decision) => Operation::Refund { taken_at: decision.at() },
            None => Operation::Check,
        },
        Deed::RefundAt(micros) => Operation::Refund { taken_at: Timestamp::from_micros(micros) },
        Deed::Reset => Operation::Reset,
        Deed::Refuse => Operation::Refuse,
    }
}

/// What the store should say.
struct Model {
    keys: [Key<'static>; KEYS.len()],
    subjects: [Entry; KEYS.len()],
    shelves: Shelves,
}

impl Default for Model {
    fn default() -> Self {
        Self { keys: KEYS.map(common::user), subjects: Default::default(), shelves: Shelves::default() }
    }
}

impl Model {
    fn decide(&mut self, step: &Step, plan: &Plan, past: &[Decision], now: u64) -> Decision {
        let charges: Vec<Charge<'_>> = step.charges.iter().map(|wish| charge(wish, plan, &self.keys)).collect();
        let operation = operation(step, past);
        // The model's instant is that of the subjects a request counts; others have no say.
        let mut counted: Vec<usize> = step.charges.iter().map(|wish| wish.key).collect();
        counted.sort_unstable();
        counted.dedup();
        let mut seen: Vec<Entry> = counted
            .iter()
            .map(|&key| if self.shelves.is_seen(key, now) { self.subjects[key].clone() } else { Entry::default() })
            .collect();
        let subject_of = |charge: usize| counted.iter().position(|&key| key == step.charges[charge].key).unwrap();
        let before = seen.clone();
        let mut mutable: Vec<&mut Entry> = seen.iter_mut().collect();
        let decision = decide(operation, &charges, Timestamp::from_micros(now), &mut mutable, subject_of);
        // A refusal writes only what it converts.
        let stays_out = |standing: &LimitStatus| {
            operation == Operation::Refuse || !decision.is_allowed() || standing.outcome.is_refusal()
        };
        let is_taken = |charge: &Charge<'_>, standing: &LimitStatus| match operation {
            Operation::Reset => true,
            _ if stays_out(standing) => {
                (charge.counts_refusals() || charge.penalised_by().is_some()) && charge.units() > 0
            }
            _ => charge.units() > 0,
        };
        let told = charges.iter().zip(decision.statuses());
        for (position, &key) in counted.iter().enumerate() {
            let mut own = step.charges.iter().zip(told.clone()).filter(|(wish, _)| wish.key == key);
            let taken = own.any(|(_, (charge, standing))| is_taken(charge, standing));
            if taken || seen[position] != before[position] {
                self.subjects[key] = seen[position].clone();
                self.shelves.written(key, &seen[position], now);
            }
        }
        decision
    }
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
    if wish.is_shadow {
        charge = charge.shadow();
    }
    if wish.is_at_most {
        charge = charge.at_most();
    }
    if let Some(penalty) = wish.penalty {
        charge = charge.penalty(&plan.penalties[penalty]);
    }
    if wish.counts_refusals { charge.count_refusals() } else { charge }
}

fn later(now: u64, passing: &Passing, quota: Option<&Quota>, last: Option<&Decision>) -> u64 {
    let promised = match last.map(Decision::outcome) {
        Some(Outcome::Refuse(span) | Outcome::Wait(span)) => span,
        _ => Duration::ZERO,
    };
    let reset = last.and_then(|last| last.statuses().first()).map_or(Duration::ZERO, |first| first.reset_after());
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
