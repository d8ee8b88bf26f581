//! Tests that the script and the model agree in every field and every stored byte.
//!
//! `PROPTEST_CASES=20000 cargo test -p tower-quota-redis --release --test deciding differential` runs longer.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use redis::Connection;
use tower_quota_core::{
    Algorithm, Charge, Decision, Entry, Key, Operation, Penalty, Quota, Store, Timestamp,
};
use tower_quota_dev::RedisServer;
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::ManualClock;
use tower_quota_testkit::differential::Differential;

use crate::common::holds::split;

/// A day in November 2025, in microseconds since the epoch.
const NOW: u64 = 1_763_683_212_345_678;

#[test]
fn script_agrees_with_model() {
    agrees(Differential::new());
}

#[test]
fn plain_decisions_agree_with_model() {
    agrees(Differential::new().plain());
}

/// Compares random traces. Entries live for at least a minute of the server's time, which is longer
/// than a trace.
fn agrees(differential: Differential) {
    let server = RedisServer::start();
    // Use one thread, so that the task that is spawned first runs first.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connection = RefCell::new(crate::common::look_at(&server));
    differential
        .bursts()
        .forgets_nothing()
        .regressions("tests/differential-regressions.txt")
        .run(|trace| {
            runtime.block_on(async {
                let options = crate::common::options()
                    .clock(trace.clock())
                    .prefix(trace.prefix());
                let store = InOrder(options.connect(&server.url()).await.unwrap());
                trace
                    .compare_bytes(&store, async |key: &Key<'_>| {
                        stored(&store.0, key, &mut connection.borrow_mut())
                    })
                    .await
            })
        });
}

/// A store that sends requests in the order of the calls. A `RedisStore` sends a refund at the
/// call, and a check at the first poll.
struct InOrder(RedisStore);

impl Store for InOrder {
    type Error = RedisStoreError;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, RedisStoreError>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let sent = tokio::spawn(self.0.apply(operation, charges));
        Box::pin(async { sent.await.unwrap() })
    }
}

fn stored(store: &RedisStore, key: &Key<'_>, connection: &mut Connection) -> Vec<u8> {
    crate::common::holds::joined(connection, &store.key_of(key))
}

#[tokio::test]
async fn longest_debts_are_capped_alike() {
    for algorithm in Algorithm::ALL {
        if algorithm == Algorithm::Concurrent {
            continue;
        }
        let mut pair = Pair::new(Quota::per_minute(10).try_algorithm(algorithm).unwrap()).await;
        // Take the largest debt, and give most of the units back.
        let owed = if algorithm.is_bucket() { 10 } else { 1 << 51 };
        let taken_at = pair.decide(NOW, Operation::Charge, u64::MAX).await.at();
        pair.decide(NOW, Operation::Refund { taken_at }, owed - 5)
            .await;
        pair.decide(NOW, Operation::Check, 3).await;
    }
}

#[tokio::test]
async fn versions_in_turn_agree() {
    let slow = [
        Quota::per_hour(6),
        Quota::per_hour(6).leaky_bucket(),
        Quota::new(1, Duration::from_secs(10)),
    ];
    let minute = Quota::per_minute(6);
    let fast = [
        minute.fixed_window(),
        minute.sliding_window(),
        minute.sliding_log(),
    ];
    for versions in slow
        .into_iter()
        .flat_map(|slow| fast.map(|fast| [slow, fast]))
    {
        let mut pair = Pair::new(versions[0]).await;
        for (step, quota) in (0..60).zip(versions.into_iter().cycle()) {
            pair.quota = quota;
            let now = NOW + step * 1_700_000;
            pair.decide(now, Operation::Check, 1).await;
        }
    }
}

#[tokio::test]
async fn longest_lists_grow_no_further() {
    for quota in [
        Quota::per_day(10_000).sliding_log(),
        Quota::concurrent(10_000),
    ] {
        let mut pair = Pair::new(quota).await;
        let ann = crate::common::user("ann");
        let charge = [Charge::new("minute", &quota, &ann)];
        for step in 0..10_000 {
            let now = Timestamp::from_micros(NOW + step);
            pair.entry.decide(Operation::Charge, &charge, now);
        }
        let (key, entry) = (pair.store.key_of(&ann), pair.entry.encode());
        if quota.algorithm() == Algorithm::Concurrent {
            split(&mut pair.connection, &key, "minute", &entry);
        } else {
            redis::cmd("SET")
                .arg(key)
                .arg(entry)
                .exec(&mut pair.connection)
                .unwrap();
        }
        pair.decide(NOW + 10_000, Operation::Charge, 5).await;
        let taken_at = Timestamp::from_micros(NOW + 1);
        pair.decide(NOW + 10_001, Operation::Refund { taken_at }, 1)
            .await;
        pair.decide(NOW + 10_002, Operation::Check, 1).await;
    }
}

#[tokio::test]
async fn log_survives_running_total_limit() {
    let mut pair = Pair::new(Quota::per_minute(10).sliding_log()).await;
    // The running total exceeds 2^53 after a dozen windows.
    for (step, cost) in [1 << 51, 5, 5].into_iter().cycle().take(60).enumerate() {
        pair.decide(NOW + step as u64 * 36_000_000, Operation::Charge, cost)
            .await;
    }
}

#[tokio::test]
async fn refund_reaches_start_of_previous_window() {
    let mut pair = Pair::new(Quota::per_minute(10).sliding_window()).await;
    let start = NOW - NOW % 60_000_000;
    let taken_at = pair.decide(start, Operation::Check, 4).await.at();
    pair.decide(start + 60_000_000, Operation::Refund { taken_at }, 3)
        .await;
    pair.decide(start + 60_000_000, Operation::Check, 9).await;
}

#[tokio::test]
async fn epoch_cuts_first_window_alike() {
    let mut pair = Pair::new(
        Quota::per_minute(10)
            .fixed_window()
            .offset(Duration::from_secs(30)),
    )
    .await;
    let taken_at = pair.decide(1_000, Operation::Check, 10).await.at();
    pair.decide(1_005, Operation::Check, 1).await;
    pair.decide(1_005, Operation::Refund { taken_at }, 2).await;
    pair.decide(
        0,
        Operation::Refund {
            taken_at: Timestamp::EPOCH,
        },
        2,
    )
    .await;
    let refused = pair.decide(0, Operation::Check, 5).await;
    let next = (refused.at() + refused.retry_after().unwrap()).as_micros();
    assert!(
        !pair
            .decide(next - 1, Operation::Check, 5)
            .await
            .is_allowed()
    );
    assert!(pair.decide(next, Operation::Check, 5).await.is_allowed());
}

#[tokio::test]
async fn marks_of_refundable_charges_agree() {
    // A microsecond refills one grain of the first quota, and seven grains of the second.
    for quota in [Quota::per_minute(10), Quota::per_minute(7)] {
        for refunded_after in [7, 14, 20, 27] {
            let mut pair = Pair::new(quota).await;
            let mut taken_at = Timestamp::EPOCH;
            for step in 0..28 {
                pair.is_refundable = step % 5 == 1;
                let now = NOW + step * 6_000_000;
                // Take more than the refill, so that the bucket refuses some requests and is never
                // full.
                let decision = pair.decide(now, Operation::Check, 1 + step % 2).await;
                if step == 6 {
                    taken_at = decision.at();
                }
                if step == refunded_after {
                    pair.is_refundable = true;
                    pair.decide(now + 1, Operation::Refund { taken_at }, 1)
                        .await;
                }
            }
        }
    }
}

/// Makes more charges than a bucket has marks, and refunds them in another order.
#[tokio::test]
async fn merged_marks_agree() {
    // A microsecond refills one grain of the first quota, and seven grains of the second.
    for quota in [Quota::per_minute(100), Quota::per_minute(70)] {
        for stride in [1, 5, 11] {
            let mut pair = Pair::new(quota).await;
            pair.is_refundable = true;
            let mut taken = Vec::new();
            for step in 0..12 {
                // Equal costs make equal gaps between the marks.
                let cost = if stride == 1 { 2 } else { 1 + step * 7 % 5 };
                // Two of every four charges have the same instant.
                let now = NOW + step / 2 * 2 * 100_000 + step % 4 / 3;
                taken.push((pair.decide(now, Operation::Check, cost).await.at(), cost));
            }
            for step in 0..12 {
                let (taken_at, cost) = taken[(step * stride) % 12];
                let now = NOW + 2_000_000 + step as u64 * 30_000;
                pair.decide(now, Operation::Refund { taken_at }, cost).await;
                if step % 3 == 0 {
                    pair.decide(now + 10_000, Operation::Check, 1).await;
                }
            }
        }
    }
}

const MINUTE: Quota = Quota::per_minute(10);
const HOUR: Quota = Quota::per_hour(70);

#[tokio::test]
async fn marks_stay_with_their_client() {
    decide_in_few_calls(|round, number, user| {
        let (minute, hour) = (
            Charge::new("minute", &MINUTE, user),
            Charge::new("hour", &HOUR, user),
        );
        match (round, number % 3) {
            (0, 0) => vec![minute.refundable(), hour.refundable()],
            (0, 1) => vec![minute.refundable(), hour],
            _ => vec![minute, hour],
        }
    })
    .await;
}

#[tokio::test]
async fn other_slots_stay_with_their_client() {
    decide_in_few_calls(|round, number, user| {
        let (minute, hour) = (
            Charge::new("minute", &MINUTE, user).cost(4),
            Charge::new("hour", &HOUR, user),
        );
        match (round, number % 3) {
            (0, 0) => vec![Charge::new("day", &HOUR, user), hour],
            _ => vec![minute, hour],
        }
    })
    .await;
}

/// The counts of the large window do not fit the short reply.
#[tokio::test]
async fn large_window_behind_refusal_is_left_to_model() {
    const LARGE: Quota = Quota::per_day(500_000_000).sliding_window();
    const SMALL: Quota = Quota::per_hour(2).sliding_window();
    decide_in_few_calls(|round, _, user| {
        let (small, large) = (
            Charge::new("small", &SMALL, user),
            Charge::new("large", &LARGE, user),
        );
        match round {
            0 => vec![small.cost(2), large.cost(300_000_000)],
            _ => vec![large, small],
        }
    })
    .await;
}

#[tokio::test]
async fn conversions_stay_with_their_client() {
    const OLD: Quota = Quota::per_minute(20);
    decide_in_few_calls(|round, number, user| {
        let quota = if round == 0 && number % 3 == 0 {
            &OLD
        } else {
            &MINUTE
        };
        // The second request is refused, so only a converted entry changes.
        vec![
            Charge::new("minute", quota, user).cost(8),
            Charge::new("hour", &HOUR, user),
        ]
    })
    .await;
}

#[tokio::test]
async fn calendar_charges_stay_with_their_client() {
    const PENALTY: Penalty = Penalty::after(1);
    static DAY: LazyLock<Quota> =
        LazyLock::new(|| Quota::per_day(2).calendar("Europe/Berlin").unwrap());
    static MONTH: LazyLock<Quota> =
        LazyLock::new(|| Quota::per_month(9).calendar("America/New_York").unwrap());
    decide_in_few_calls(|round, number, user| {
        let day = Charge::new("day", &DAY, user).cost(1 + (round + number) as u64 % 2);
        vec![
            day.penalty(&PENALTY),
            Charge::new("month", &MONTH, user).refundable(),
            Charge::new("hour", &HOUR, user),
        ]
    })
    .await;
}

#[tokio::test]
async fn calendar_windows_agree() {
    let quotas = [
        Quota::per_day(5).calendar("Europe/Berlin"),
        Quota::per_week(5).calendar("America/Santiago"),
        Quota::per_month(5).calendar("UTC"),
        Quota::per_year(5).calendar("Asia/Kolkata"),
    ];
    for quota in quotas {
        let mut pair = Pair::new(quota.unwrap()).await;
        let (mut now, mut taken_at) = (NOW, Timestamp::EPOCH);
        for step in 0..140 {
            let operation = match step % 6 {
                3 => Operation::Refund { taken_at },
                _ => Operation::Check,
            };
            let decision = pair.decide(now, operation, 1 + step % 3).await;
            let end = (decision.at() + decision.statuses()[0].reset_after()).as_micros();
            now = match step % 7 {
                0 => now,
                // Decide just before the border, at the border, and then a moment earlier.
                1 => now.max(end - 1),
                2 => now + 1,
                3 => now - 1,
                4 => now.max(end),
                // Cross a border with the state of the previous window.
                5 => now + (end - now) / 3,
                _ => end + (end - now) / 2,
            };
            if operation == Operation::Check {
                taken_at = decision.at();
            }
        }
    }
}

#[tokio::test]
async fn first_calendar_window_agrees() {
    let quota = Quota::per_day(2).calendar("America/New_York").unwrap();
    let mut pair = Pair::new(quota).await;
    for now in [0, 1, 17_999_999_999, 18_000_000_000] {
        pair.decide(now, Operation::Check, 1).await;
    }
}

/// Compares the decisions and the entries of clients that share calls.
///
/// The clients also share the variables of the script. `charges` returns the charges of a client in
/// a round.
async fn decide_in_few_calls(
    charges: impl for<'c> Fn(usize, usize, &'c Key<'static>) -> Vec<Charge<'c>>,
) {
    let (server, clock) = (RedisServer::start(), ManualClock::default());
    let store = crate::common::options()
        .clock(clock.clone())
        .connect(&server.url())
        .await
        .unwrap();
    let users: Vec<Key<'static>> = (0..60)
        .map(|user| crate::common::user(&user.to_string()))
        .collect();
    let mut entries = vec![Entry::default(); users.len()];
    for round in 0..3 {
        // An unnecessary write would show the later instant.
        let now = Timestamp::from_micros(NOW + 1_000 * round as u64);
        clock.set(now);
        let mut asked = Vec::new();
        for (number, (user, entry)) in users.iter().zip(&mut entries).enumerate() {
            let charges = charges(round, number, user);
            let expected = entry.decide(Operation::Check, &charges, now);
            asked.push((tokio::spawn(store.check(&charges)), expected));
        }
        for (decided, expected) in asked {
            assert_eq!(decided.await.unwrap().unwrap(), expected);
        }
    }
    let mut connection = crate::common::look_at(&server);
    for (user, entry) in users.iter().zip(&entries) {
        assert_eq!(
            stored(&store, user, &mut connection),
            entry.encode(),
            "{user:?}"
        );
    }
    assert!(
        crate::common::calls(&server, "evalsha") < 60,
        "few calls carry many decisions"
    );
}

/// A store and the model, with one limit of one client.
struct Pair {
    connection: Connection,
    clock: ManualClock,
    store: RedisStore,
    entry: Entry,
    quota: Quota,
    is_refundable: bool,
    _server: RedisServer,
}

impl Pair {
    async fn new(quota: Quota) -> Self {
        let (server, clock) = (RedisServer::start(), ManualClock::default());
        let store = crate::common::options()
            .clock(clock.clone())
            .connect(&server.url())
            .await
            .unwrap();
        let connection = crate::common::look_at(&server);
        Self {
            connection,
            clock,
            store,
            entry: Entry::default(),
            quota,
            is_refundable: false,
            _server: server,
        }
    }

    /// Decides on both sides, and compares the decision and the bytes.
    async fn decide(&mut self, now: u64, operation: Operation, cost: u64) -> Decision {
        let (ann, now) = (crate::common::user("ann"), Timestamp::from_micros(now));
        let charge = Charge::new("minute", &self.quota, &ann).cost(cost);
        let charges = [if self.is_refundable {
            charge.refundable()
        } else {
            charge
        }];
        self.clock.set(now);
        let expected = self.entry.decide(operation, &charges, now);
        assert_eq!(
            self.store.apply(operation, &charges).await.unwrap(),
            expected
        );
        assert_eq!(
            stored(&self.store, &ann, &mut self.connection),
            self.entry.encode()
        );
        expected
    }
}
