//! Tests that decisions over several partitions have the results of a single step.

use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::{Strategy, prop_assert_eq};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use tokio::runtime::Runtime;
use tower_quota_core::{
    Algorithm, Charge, ChargeMode, Decision, Entry, Key, Operation, Outcome, Penalty, Quota, Store,
    decide,
};
use tower_quota_dev::RedisServer;
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::ManualClock;

use crate::common::{look_at, options, user};

const KEYS: usize = 4;
const PENALTY: Penalty = Penalty::after(2)
    .step(Duration::from_millis(40))
    .most(Duration::from_secs(1));
const NAMES: [&str; 2] = ["one", "other"];

/// Describes one charge of a request.
#[derive(Clone, Debug)]
struct ChargeOptions {
    key: usize,
    name: usize,
    algorithm: Algorithm,
    cost: u64,
    counts_refusals: bool,
    is_shadow: bool,
    is_at_most: bool,
    has_penalty: bool,
}

/// Returns the algorithms that the script has.
fn scripted() -> [Algorithm; 6] {
    core::array::from_fn(|number| Algorithm::ALL[number])
}

fn charge_strategy() -> impl Strategy<Value = ChargeOptions> {
    let algorithm = select(scripted().to_vec());
    // Leave out counted refusals of partial grants, because a part does not know the other parts'
    // costs.
    let manners = select(vec![(false, false), (true, false), (false, true)]);
    (
        0..KEYS,
        0..NAMES.len(),
        algorithm,
        0..5_u64,
        manners,
        proptest::bool::weighted(0.2),
        proptest::bool::weighted(0.3),
    )
        .prop_map(
            |(
                key,
                name,
                algorithm,
                cost,
                (counts_refusals, is_at_most),
                is_shadow,
                has_penalty,
            )| {
                ChargeOptions {
                    key,
                    name,
                    algorithm,
                    cost,
                    counts_refusals,
                    is_shadow,
                    is_at_most,
                    has_penalty,
                }
            },
        )
}

/// A store with several partitions, its clock, and the model to compare it with.
struct Bench {
    runtime: Runtime,
    clock: ManualClock,
    store: RedisStore,
    keys: Vec<Key<'static>>,
    entries: Vec<Entry>,
}

impl Bench {
    fn new(server: &RedisServer, run: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let clock = ManualClock::default();
        let options = options().clock(clock.clone()).prefix(format!("run:{run}"));
        let partitions = NonZeroUsize::new(64).unwrap();
        let store = runtime
            .block_on(options.partitions(partitions).connect(&server.url()))
            .unwrap();
        // The store decides global limits last, at any position of a request.
        let keys = (1..KEYS)
            .map(|i| user(&format!("user {i}")))
            .chain([Key::EVERYONE])
            .collect();
        Self {
            runtime,
            clock,
            store,
            keys,
            entries: vec![Entry::default(); KEYS],
        }
    }

    /// Checks a request. Returns the store's decision and the model's.
    fn check(&mut self, charges: &[Charge<'_>]) -> (Decision, Decision) {
        let now = tower_quota_core::Clock::now(&self.clock);
        let keys = &self.keys;
        let place = |charge: usize| {
            keys.iter()
                .position(|key| key == charges[charge].key())
                .unwrap()
        };
        let mut entries: Vec<&mut Entry> = self.entries.iter_mut().collect();
        let expected = decide(Operation::Check, charges, now, &mut entries, place);
        (
            self.runtime.block_on(self.store.check(charges)).unwrap(),
            expected,
        )
    }
}

#[tokio::test]
async fn refund_reaches_parts_behind_a_failure() {
    let server = RedisServer::start();
    // Use a clock that stands still, so that the refund is exact.
    let options = options()
        .clock(ManualClock::default())
        .partitions(NonZeroUsize::new(64).unwrap());
    let store = options.connect(&server.url()).await.unwrap();
    let (ann, everyone, quota) = (user("ann"), Key::EVERYONE, Quota::per_hour(5));
    let (own, global) = (
        Charge::new("one", &quota, &ann),
        Charge::new("one", &quota, &everyone),
    );
    let refund = store.check(&[own, global]).await.unwrap().refund().unwrap();
    redis::cmd("SET")
        .arg(store.key_of(&ann))
        .arg("nonsense")
        .exec(&mut look_at(&server))
        .unwrap();
    let error = store.apply(refund, &[own, global]).await.unwrap_err();
    assert!(matches!(error, RedisStoreError::State { .. }), "{error:?}");
    assert_eq!(
        store.check(&[global.cost(0)]).await.unwrap().statuses()[0].remaining(),
        5
    );
}

#[tokio::test]
async fn refusal_stands_without_later_parts() {
    let server = RedisServer::start();
    let store = options()
        .partitions(NonZeroUsize::new(64).unwrap())
        .connect(&server.url())
        .await
        .unwrap();
    let (ann, everyone, quota) = (user("ann"), Key::EVERYONE, Quota::per_hour(5));
    let (own, global) = (
        Charge::new("one", &quota, &ann).cost(5),
        Charge::new("all", &quota, &everyone),
    );
    assert!(store.check(&[own]).await.unwrap().is_allowed());
    redis::cmd("SET")
        .arg(store.key_of(&everyone))
        .arg("nonsense")
        .exec(&mut look_at(&server))
        .unwrap();
    let refusal = store.check(&[global, own]).await.unwrap();
    assert!(refusal.retry_after().is_some());
    assert_eq!(
        refusal
            .statuses()
            .iter()
            .map(|status| status.name.as_str())
            .collect::<Vec<_>>(),
        ["one"]
    );
    assert!(refusal.at() > tower_quota_core::Timestamp::EPOCH);
}

#[tokio::test]
async fn charges_of_at_most_report_common_units() {
    let server = RedisServer::start();
    let (store, [ann, bob]) = store_in_parts(&server).await;
    let quota = Quota::per_hour(10);
    let (first, second) = (
        Charge::new("one", &quota, &ann),
        Charge::new("one", &quota, &bob),
    );
    // The used units before the request, and the units that are left after it.
    for (used, left) in [([7, 5], [0, 2]), ([5, 7], [0, 0])] {
        let both = [first.cost(used[0]), second.cost(used[1])];
        store.apply(Operation::Reset, &both).await.unwrap();
        store.apply(Operation::Charge, &both).await.unwrap();
        let at_most = [first.cost(5).at_most(), second.cost(5).at_most()];
        let decision = store.check(&at_most).await.unwrap();
        let statuses = decision.statuses();
        assert_eq!(statuses.len(), 2);
        for (status, left) in statuses.iter().zip(left) {
            assert_eq!((status.taken, status.remaining()), (3, left), "{used:?}");
        }
    }
}

#[test]
fn decision_in_parts_equals_one_step() {
    let server = RedisServer::start();
    let (mut run, mut refusals) = (0, 0);
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let requests = proptest::collection::vec(
        (
            0..300_u64,
            proptest::collection::vec(charge_strategy(), 2..6),
        ),
        1..40,
    );
    let cell = std::cell::RefCell::new((&mut run, &mut refusals));
    let outcome = runner.run(&requests, |requests| {
        let (run, refusals) = &mut *cell.borrow_mut();
        **run += 1;
        play(&requests, &mut Bench::new(&server, **run), refusals)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{refusals} refusals in {run} runs are as the model says");
    assert!(refusals > 500, "{refusals}");
}

fn play(
    requests: &[(u64, Vec<ChargeOptions>)],
    bench: &mut Bench,
    refusals: &mut u32,
) -> TestCaseResult {
    let quotas = scripted().map(|algorithm| Quota::per_second(5).try_algorithm(algorithm).unwrap());
    for (pause, charge_options) in requests {
        bench.clock.advance(Duration::from_millis(*pause));
        let mut seen = Vec::new();
        let charge_options: Vec<&ChargeOptions> = charge_options
            .iter()
            .filter(|options| {
                let is_new = !seen.contains(&(options.key, options.name));
                seen.push((options.key, options.name));
                is_new
            })
            .collect();
        // Of several parts, an earlier one may keep more units than the model.
        let at_most = charge_options.iter().find(|options| options.is_at_most);
        let at_most_key = at_most.map_or(0, |options| options.key);
        let keys = bench.keys.clone();
        let charges: Vec<Charge<'_>> = charge_options
            .iter()
            .map(|options| {
                let quota = quotas
                    .iter()
                    .find(|quota| quota.algorithm() == options.algorithm)
                    .unwrap();
                let charge =
                    Charge::new(NAMES[options.name], quota, &keys[options.key]).cost(options.cost);
                let charge = if options.is_shadow {
                    charge.shadow()
                } else {
                    charge
                };
                let charge = if options.is_at_most && options.key == at_most_key {
                    charge.at_most()
                } else {
                    charge
                };
                let charge = if options.has_penalty {
                    charge.penalty(&PENALTY)
                } else {
                    charge
                };
                if options.counts_refusals {
                    charge.count_refusals()
                } else {
                    charge
                }
            })
            .collect();
        let (decided, expected) = bench.check(&charges);
        prop_assert_eq!(decided.outcome(), expected.outcome());
        prop_assert_eq!(decided.tightest(), expected.tightest());
        *refusals += u32::from(matches!(expected.outcome(), Outcome::Refuse(_)));
        // Compare the decisions themselves, because a clone has no refund.
        prop_assert_eq!(decided, expected);
    }
    Ok(())
}

/// Returns a store with several partitions, and two users in different ones.
async fn store_in_parts(server: &RedisServer) -> (RedisStore, [Key<'static>; 2]) {
    let options = options().partitions(NonZeroUsize::new(12).unwrap());
    let store = options.connect(&server.url()).await.unwrap();
    let partition = |key: &Key<'_>| {
        let name = store.key_of(key);
        name.split(['{', '}']).nth(1).unwrap().to_owned()
    };
    let ann = user("ann");
    let mut others = (0..).map(|number| user(&format!("user {number}")));
    let other = others
        .find(|key| partition(key) != partition(&ann))
        .unwrap();
    (store, [ann, other])
}

#[tokio::test]
async fn hold_in_one_part_is_released_and_renewed() {
    let server = RedisServer::start();
    let (store, [ann, bob]) = store_in_parts(&server).await;
    let (hour, uploads) = (Quota::per_hour(10), Quota::concurrent(2));
    let charges = [
        Charge::new("hour", &hour, &bob),
        Charge::new("uploads", &uploads, &ann),
    ];
    let mut first = store.check(&charges).await.unwrap();
    assert!(store.check(&charges).await.unwrap().is_allowed());
    let refused = store.check(&charges).await.unwrap();
    assert!(!refused.is_allowed());
    assert_eq!(refused.status("hour").unwrap().remaining(), 8);

    let taken_at = first.at();
    let renewed = store.apply(Operation::Renew { taken_at }, &charges).await;
    assert_eq!(renewed.unwrap().status("uploads").unwrap().taken, 1);
    let refund = first.refund().unwrap();
    for _ in 0..2 {
        // The second release finds no hold.
        let released = store.apply(refund, &charges).await.unwrap();
        assert_eq!(released.status("uploads").unwrap().remaining(), 1);
    }
    assert!(store.check(&charges).await.unwrap().is_allowed());
    assert!(!store.check(&charges).await.unwrap().is_allowed());
}

#[tokio::test]
async fn holds_in_two_parts_are_an_error() {
    let server = RedisServer::start();
    let (store, [ann, bob]) = store_in_parts(&server).await;
    let uploads = Quota::concurrent(2);
    let charges = [
        Charge::new("own", &uploads, &ann),
        Charge::new("shared", &uploads, &bob),
    ];
    let error = store.check(&charges).await.unwrap_err();
    let is_named = matches!(error, RedisStoreError::HoldsOfSeveralKeys { .. });
    assert!(is_named && error.to_string().contains("one key"), "{error}");
    assert!(store.check(&charges[..1]).await.unwrap().is_allowed());
}

#[tokio::test]
async fn forced_charges_of_all_parts_survive_refusal() {
    let server = RedisServer::start();
    let (store, [ann, bob]) = store_in_parts(&server).await;
    let (few, many) = (Quota::per_hour(1), Quota::per_hour(10));
    for (own, other) in [(&ann, &bob), (&bob, &ann)] {
        let charges = [
            Charge::new("attempts", &many, own).in_mode(ChargeMode::Forced),
            Charge::new("few", &few, other),
        ];
        for left in [9, 8, 7] {
            let decision = store.check(&charges).await.unwrap();
            assert_eq!(decision.is_allowed(), left == 9);
            let attempts = decision.status("attempts").unwrap();
            assert_eq!((attempts.remaining(), attempts.taken), (left, 1));
        }
    }
}
