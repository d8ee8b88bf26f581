//! The script and the model in `tower-quota-core` agree, step by step, in every field and in every stored byte.
//!
//! `TOWER_QUOTA_CASES=20000 cargo test -p tower-quota-redis --release --test differential` runs longer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
mod plan;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestCaseResult, TestRunner};
use redis::Connection;
use tokio::runtime::Runtime;
use tower_quota_core::{Algorithm, Charge, Decision, Entry, Key, Operation, Outcome, Quota, Store, Timestamp, decide};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::{ManualClock, RedisServer};

use self::plan::{Cost, Deed, KEYS, NAMES, NOW, Passing, Plan, Step, Wish, plain_plan, plan};

const ELSE: Quota = Quota::per_hour(1);
const REGRESSIONS: &str = "tests/differential/regressions.txt";

#[test]
fn script_agrees_with_model() {
    agrees(&plan());
}

#[test]
fn plain_decisions_agree_with_model() {
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
fn longest_debts_are_cut_alike() {
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
fn log_that_never_empties_counts_on() {
    let bench = Bench::new();
    let quotas = vec![Quota::per_minute(10).sliding_log()];
    // Its running total passes 2^53 after a dozen windows.
    let steps = [1 << 51, 5, 5].into_iter().cycle().take(60);
    let steps = steps.map(|cost| Step::on_first(Passing::Share(600, 0), Deed::Charge, cost)).collect();
    bench.run(&plan_of(NOW, quotas, steps)).unwrap();
}

#[test]
fn refund_reaches_start_of_previous_window() {
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
fn epoch_cuts_first_window_off_alike() {
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

/// A server, and a clock that the stores in it use.
struct Bench {
    server: RedisServer,
    connection: RefCell<Connection>,
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
        let connection = RefCell::new(common::look_at(&server));
        Self { server, connection, runtime, clock, runs: Cell::new(0), steps: Cell::new(0) }
    }

    fn run(&self, plan: &Plan) -> TestCaseResult {
        self.runs.set(self.runs.get() + 1);
        self.steps.set(self.steps.get() + plan.steps.len());
        let connection = &mut self.connection.borrow_mut();
        self.runtime.block_on(run(plan, self.runs.get(), &self.server.url(), &self.clock, connection))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failed test has printed what is of interest.
        if !std::thread::panicking() {
            let left = common::entries(&self.server).len();
            println!("{} steps in {} runs agree; {left} entries left", self.steps.get(), self.runs.get());
        }
    }
}

async fn run(plan: &Plan, run: usize, url: &str, clock: &ManualClock, connection: &mut Connection) -> TestCaseResult {
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

        // While another client's check is under way, the first two of a burst are sent at once and the others in one
        // call.
        let _busy =
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
        let step = past.len();
        model
            .compare_bytes(&store, connection)
            .map_err(|words| TestCaseError::fail(format!("after step {step}: {words}")))?;
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
        Deed::Peek => Operation::Peek,
    }
}

/// The answers and entries that the store should have.
struct Model {
    keys: [Key<'static>; KEYS.len()],
    entries: [Entry; KEYS.len()],
    /// Entries that count as missing, being from the future. They stay stored until they are written over.
    distrusted: [Option<Entry>; KEYS.len()],
}

impl Default for Model {
    fn default() -> Self {
        Self { keys: KEYS.map(common::user), entries: Default::default(), distrusted: Default::default() }
    }
}

impl Model {
    fn decide(&mut self, step: &Step, plan: &Plan, past: &[Decision], now: u64) -> Decision {
        let charges: Vec<Charge<'_>> = step.charges.iter().map(|wish| charge(wish, plan, &self.keys)).collect();
        // The instant is the latest of the entries that a request counts; others do not matter.
        let is_counted = |key: usize| step.charges.iter().any(|wish| wish.key == key);
        for key in (0..KEYS.len()).filter(|&key| is_counted(key)) {
            if is_from_the_future(&self.entries[key], now) {
                self.distrusted[key] = Some(self.entries[key].clone());
            }
        }
        let (counted, mut entries): (Vec<usize>, Vec<&mut Entry>) =
            self.entries.iter_mut().enumerate().filter(|(key, _)| is_counted(*key)).unzip();
        let entry_of = |charge: usize| counted.iter().position(|&key| key == step.charges[charge].key).unwrap();
        decide(operation(step, past), &charges, Timestamp::from_micros(now), &mut entries, entry_of)
    }

    /// Compares what is stored with the model's entries.
    fn compare_bytes(&mut self, store: &RedisStore, connection: &mut Connection) -> Result<(), String> {
        for ((key, entry), distrusted) in self.keys.iter().zip(&mut self.entries).zip(&mut self.distrusted) {
            let stored: Option<Vec<u8>> =
                redis::cmd("GET").arg(store.key_of(key)).query(connection).map_err(|error| error.to_string())?;
            let stored = stored.unwrap_or_default();
            match distrusted.take() {
                // It may count again when the clock has gone on.
                Some(distrusted) if entry.is_empty() && stored == distrusted.encode() => *entry = distrusted,
                _ => {}
            }
            if stored != entry.encode() {
                return Err(format!("{key:?}\n stored: {stored:x?}\n model: {:x?}\n {entry:#?}", entry.encode()));
            }
            if !stored.is_empty() && Entry::decode(&stored).as_ref() != Ok(&*entry) {
                return Err(format!("{key:?}: {stored:x?} does not decode to {entry:#?}"));
            }
        }
        Ok(())
    }
}

fn is_from_the_future(entry: &Entry, now: u64) -> bool {
    let trusted = Duration::from_secs(60) + entry.full_at().since(entry.at());
    entry.at() > Timestamp::from_micros(now) + trusted
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
    if wish.is_refundable {
        charge = charge.refundable();
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
        Passing::Distrust(micros) => last.map_or(now, |last| {
            let trusted = Duration::from_secs(60) + reset;
            let trusted = u64::try_from(trusted.as_micros()).unwrap();
            last.at().as_micros().saturating_sub(trusted).saturating_add_signed(micros)
        }),
    };
    // The year 2112, where the script's clock ends.
    then.min(1 << 52)
}

fn due(decision: &Decision, span: Duration, micros: i64) -> u64 {
    (decision.at() + span).as_micros().saturating_add_signed(micros)
}
