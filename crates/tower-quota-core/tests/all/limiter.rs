//! Tests limits without HTTP.

use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, advance, timeout};
use tower_quota_core::{
    BoxStore, Charge, Clock, ConfigError, Decision, Key, Limiter, MemoryStore, Name, NotReady,
    Operation, Outcome, Quota, Store, Timestamp,
};
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore, block_on};

const SECOND: Duration = Duration::from_secs(1);

fn manual(quota: Quota) -> (ManualClock, Limiter<MemoryStore>) {
    let clock = ManualClock::default();
    (
        clock.clone(),
        Limiter::new(MemoryStore::with_clock(100, clock), "limit", quota),
    )
}

fn check(limiter: &Limiter<MemoryStore>, key: &str) -> Decision {
    let Ok(decision) = limiter.check(key).into_inner();
    decision
}

fn remaining(limiter: &Limiter<MemoryStore>, key: &str) -> Vec<u64> {
    let Ok(decision) = limiter.peek(key).into_inner();
    decision
        .statuses()
        .iter()
        .map(|status| status.remaining())
        .collect()
}

/// Uses limiters of one store that share entries, with other quotas and more limits.
#[test]
fn sync_checks_agree_on_shared_entries() {
    let clock = ManualClock::default();
    let limiters = || {
        let store = MemoryStore::with_clock(8, clock.clone());
        let one = |quota| Limiter::new(store.clone(), "limit", quota);
        [
            one(Quota::per_second(7).burst(3)),
            one(Quota::per_second(7).burst(3)),
            one(Quota::per_second(4).burst(5).gcra()),
            one(Quota::per_second(3).fixed_window()),
            one(Quota::per_second(3).sliding_window()),
            one(Quota::per_second(3).sliding_log()),
            one(Quota::per_second(5).leaky_bucket().queue(2)),
            one(Quota::per_second(7).burst(3)).limit("hour", Quota::per_hour(9_000)),
        ]
    };
    let (ones, others) = (limiters(), limiters());
    let mut random = 1_u64;
    for step in 0..6_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let draw = |shift: u32, below: u64| (random >> shift) % below;
        match draw(20, 20) {
            0 => clock.set(Timestamp::from_micros(
                clock.now().as_micros() - draw(30, 50_000),
            )),
            _ => clock.advance(Duration::from_micros(draw(30, 150_000))),
        }
        // Begin with plain checks, and use all kinds later.
        let which = if step < 1_000 {
            0
        } else {
            usize::try_from(draw(40, 8)).unwrap()
        };
        let (key, cost) = (draw(50, 3), draw(54, 5));
        let answer = ones[which].check_n_now(&key, cost);
        let Ok(decision) = others[which].check_n(&key, cost).into_inner();
        assert_eq!(answer.is_allowed(), decision.is_allowed(), "{step}");
        assert_eq!(
            answer.remaining(),
            decision.tightest().unwrap().remaining(),
            "{step}"
        );
        assert_eq!(answer.retry_after(), decision.retry_after(), "{step}");
    }
}

#[test]
fn limiters_of_different_scopes_count_apart() {
    let store = MemoryStore::with_clock(100, ManualClock::default());
    let quota = Quota::per_minute(1);
    let limiters = [
        Limiter::new(store.clone(), "a", quota),
        Limiter::new(store.clone(), "b", quota),
        Limiter::new(store, "a", quota).scope("c"),
    ];
    for limiter in &limiters {
        assert!(limiter.check_now("ann").is_allowed());
    }
    for limiter in &limiters {
        assert!(!limiter.check_now("ann").is_allowed());
    }
}

#[test]
fn several_limits_take_all_or_nothing() {
    let (_, limiter) = manual(Quota::per_minute(3));
    let limiter = limiter.limit("hour", Quota::per_hour(2));
    assert!(limiter.check_now("ann").is_allowed());
    let Ok(refused) = limiter.check_n("ann", 2).into_inner();
    assert!(!refused.is_allowed());
    assert_eq!(remaining(&limiter, "ann"), [2, 1]);
    assert_eq!(limiter.check_now("ann").remaining(), 0);
    assert!(!limiter.check_now("ann").is_allowed());
    assert_eq!(remaining(&limiter, "ann"), [1, 0]);
}

#[test]
fn refund_gives_back_no_more_than_taken() {
    let (clock, limiter) = manual(Quota::per_second(1).burst(3));
    let Ok(taken) = limiter.check_n("ann", 2).into_inner();
    let copy = taken.clone();
    let Ok(_) = limiter.refund("ann", copy).into_inner();
    assert_eq!(
        remaining(&limiter, "ann"),
        [1],
        "a clone has nothing to give back"
    );
    clock.advance(SECOND);
    let Ok(_) = limiter.refund("ann", taken).into_inner();
    assert_eq!(remaining(&limiter, "ann"), [3]);
    assert!(check(&limiter, "ann").is_allowed());

    let Ok(refused) = limiter.check_n("ann", 3).into_inner();
    assert!(!refused.is_allowed());
    let Ok(_) = limiter.refund("ann", refused).into_inner();
    assert_eq!(
        remaining(&limiter, "ann"),
        [2],
        "a refusal has nothing to give back"
    );
}

#[test]
fn reset_limit_leaves_the_others() {
    let (_, limiter) = manual(Quota::per_minute(3));
    let limiter = limiter.limit("hour", Quota::per_hour(9));
    assert!(limiter.check_now("ann").is_allowed());
    let Ok(_) = limiter.reset_limit("ann", "hour").unwrap().into_inner();
    assert_eq!(remaining(&limiter, "ann"), [2, 9]);
    let Ok(_) = limiter.reset("ann").into_inner();
    assert_eq!(remaining(&limiter, "ann"), [3, 9]);
}

#[test]
fn unknown_limit_error_lists_known_limits() {
    let (_, limiter) = manual(Quota::per_minute(3));
    let limiter = limiter.limit("hour", Quota::per_hour(9));
    let error = limiter.reset_limit("ann", "day").unwrap_err();
    assert_eq!(error.name(), "day");
    assert_eq!(error.known(), [Name::new("limit"), Name::new("hour")]);
    assert_eq!(
        error.to_string(),
        r#"the limiter has no limit "day": it has ["limit", "hour"]"#
    );
}

#[test]
fn invalid_names_are_typed_errors() {
    let quota = Quota::per_minute(1);
    let one = || Limiter::new(MemoryStore::with_capacity(1), "one", quota);
    assert_eq!(
        one().try_limit("one", quota).unwrap_err(),
        ConfigError::DuplicateLimit(Name::new("one"))
    );
    let penalty = Name::new("one penalty");
    assert_eq!(
        one().try_limit(penalty, quota).unwrap_err(),
        ConfigError::CollidingNames(Name::new("one"), penalty)
    );
    for name in ["", "caf\u{e9}", "line\nbreak"] {
        let error = Limiter::try_new(MemoryStore::with_capacity(1), name, quota).unwrap_err();
        assert_eq!(error, ConfigError::LimitName(Name::new(name)));
        assert_eq!(one().try_limit(name, quota).unwrap_err(), error);
    }
}

/// A clock that shows the time of the paused runtime.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_763_683_200_000_000) + Instant::now().duration_since(self.0)
    }
}

#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
fn now() -> Instant {
    Instant::now()
}

fn memory() -> MemoryStore {
    MemoryStore::with_clock(100, RuntimeClock(now()))
}

#[test]
fn present_turn_needs_no_runtime() {
    let (_, limiter) = manual(Quota::per_second(1));
    let turn = pin!(limiter.until_ready("ann"));
    let answer = turn.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(answer, Poll::Ready(Ok(decision)) if decision.is_allowed()));
}

#[tokio::test(start_paused = true)]
async fn turns_come_in_their_order() {
    let limiter = Limiter::new(memory(), "limit", Quota::per_second(10).burst(1));
    let start = now();
    let turns = (0..5).map(|number| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let decision = limiter.until_ready("ann").await.unwrap();
            (number, decision.wait(), now().duration_since(start))
        })
    });
    for (number, turn) in (0..).zip(turns.collect::<Vec<_>>()) {
        let (asked, wait, waited) = turn.await.unwrap();
        assert_eq!((asked, wait), (number, Duration::from_millis(100) * number));
        assert!(
            (wait..=wait + Duration::from_millis(1)).contains(&waited),
            "{number}: {waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_wait_gives_its_turn_back() {
    for quota in [
        Quota::per_second(1),
        Quota::per_second(1).gcra(),
        Quota::per_second(1).leaky_bucket().queue(5),
    ] {
        let limiter =
            Limiter::new(memory(), "limit", quota.burst(2)).limit("hour", Quota::per_hour(100));
        while limiter.check_now("ann").is_allowed() {}
        let before = remaining(&limiter, "ann");
        let wait = limiter.until_ready("ann");
        assert!(timeout(Duration::ZERO, wait).await.is_err());
        assert_eq!(remaining(&limiter, "ann"), before);
        let decision = limiter.until_ready("ann").await.unwrap();
        assert!(
            decision.wait() <= SECOND,
            "{quota:?}: {:?}",
            decision.wait()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_before_another_stays_empty() {
    let limiter = Limiter::new(memory(), "limit", Quota::per_second(1).leaky_bucket());
    limiter.until_ready("ann").await.unwrap();
    let mut waits: Vec<_> = (0..3)
        .map(|_| Box::pin(limiter.until_ready("ann")))
        .collect();
    for wait in &mut waits {
        assert!(timeout(Duration::ZERO, wait).await.is_err());
    }
    let last = waits.pop().unwrap();
    drop(waits);
    let next = limiter.until_ready("ann").await.unwrap();
    assert_eq!(next.wait(), SECOND * 4);
    assert_eq!(last.await.unwrap().wait(), SECOND * 3);
}

/// Covers two versions of a service that take turns while a call waits.
#[tokio::test(start_paused = true)]
async fn cancelled_wait_creates_nothing_under_changed_quotas() {
    let store = memory();
    let of = |quota: Quota| Limiter::new(store.clone(), "limit", quota.burst(10));
    let (limiter, faster) = (of(Quota::per_second(1)), of(Quota::per_second(100)));
    assert!(limiter.check_n_now("ann", 10).is_allowed());
    let mut wait = Box::pin(limiter.until_n_ready("ann", 5, SECOND * 9));
    assert!(timeout(Duration::ZERO, &mut wait).await.is_err());
    assert!(!faster.check_n_now("ann", 10).is_allowed());
    advance(Duration::from_millis(200)).await;
    assert!(faster.check_now("ann").is_allowed());
    advance(Duration::from_millis(200)).await;
    // The faster version has refilled the units of the call.
    assert!(limiter.check_n_now("ann", 10).is_allowed());
    drop(wait);
    tokio::task::yield_now().await;
    assert_eq!(remaining(&limiter, "ann"), [0]);
}

#[tokio::test(start_paused = true)]
async fn longer_wait_is_refused_at_once() {
    let limiter =
        Limiter::new(memory(), "limit", Quota::per_second(1).burst(1)).max_wait(SECOND * 3);
    let start = now();
    assert_eq!(
        limiter
            .until_n_ready("ann", 1, Duration::ZERO)
            .await
            .unwrap()
            .wait(),
        Duration::ZERO
    );
    let refusal = limiter
        .until_n_ready("ann", 1, SECOND / 4)
        .await
        .unwrap_err();
    assert_eq!(
        refusal.decision().unwrap().retry_after(),
        Some(SECOND * 3 / 4)
    );
    assert_eq!(
        refusal.to_string(),
        "the turn is too far away: try again in 750ms"
    );
    let never = limiter.until_n_ready("ann", 2, SECOND).await.unwrap_err();
    assert_eq!(never.decision().unwrap().outcome(), Outcome::Never);
    let waits = async || {
        limiter
            .clone()
            .until_ready("ann")
            .await
            .map(|decision| decision.wait())
    };
    let (one, two, three, four) = tokio::join!(waits(), waits(), waits(), waits());
    assert_eq!(
        [one, two, three].map(Result::unwrap),
        [SECOND, SECOND * 2, SECOND * 3]
    );
    assert_eq!(
        four.unwrap_err().decision().unwrap().retry_after(),
        Some(SECOND)
    );
    assert!(now().duration_since(start) <= SECOND * 3 + Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn queue_is_as_long_as_the_wait() {
    let limiter = || Limiter::new(memory(), "limit", Quota::per_second(5).leaky_bucket());
    for (limiter, longest, accepted) in [
        (limiter(), SECOND * 60, 301),
        (limiter().max_wait(SECOND * 6), SECOND * 6, 31),
        (limiter().max_wait(SECOND * 6), SECOND * 60, 31),
        (limiter().max_wait(SECOND * 6), SECOND, 6),
        (
            Limiter::new(
                memory(),
                "limit",
                Quota::per_second(5).leaky_bucket().queue(8),
            ),
            SECOND * 60,
            8,
        ),
    ] {
        let mut waits = Vec::new();
        loop {
            let mut wait = Box::pin(limiter.until_n_ready("ann", 1, longest));
            match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(_)) => break,
                _ => waits.push(wait),
            }
        }
        assert_eq!(waits.len(), accepted, "{limiter:?}, {longest:?}");
    }
}

#[test]
fn queue_is_set_in_any_order() {
    let quota = Quota::per_second(5).leaky_bucket();
    let one = Limiter::new(MemoryStore::with_capacity(1), "a", quota)
        .max_wait(SECOND * 6)
        .limit("b", quota);
    let other = Limiter::new(MemoryStore::with_capacity(1), "a", quota)
        .limit("b", quota)
        .max_wait(SECOND * 6);
    for limiter in [one, other] {
        assert_eq!(remaining(&limiter, "ann"), [31, 31]);
    }
}

#[tokio::test(start_paused = true)]
async fn distant_store_gets_cancelled_turns_back() {
    // One call is cancelled while the store decides, and one while it waits for its turn.
    for is_held in [true, false] {
        let store = ScriptedStore::new();
        let limiter = Limiter::new(store.clone(), "limit", Quota::per_second(1).burst(1));
        limiter.check("ann").await.unwrap();
        if is_held {
            store.push(ScriptedAnswer::memory().held());
        }
        assert!(
            timeout(Duration::ZERO, limiter.until_ready("ann"))
                .await
                .is_err()
        );
        store.release();
        tokio::task::yield_now().await;
        assert_eq!(
            limiter.until_ready("ann").await.unwrap().wait(),
            SECOND,
            "held: {is_held}"
        );
    }
}

/// A store that waits when it is closed.
#[derive(Clone)]
struct Closing(Arc<AtomicU64>);

impl Store for Closing {
    type Error = Infallible;
    type Future = core::future::Ready<Result<Decision, Infallible>>;

    fn apply(&self, _: Operation, _: &[Charge<'_>]) -> Self::Future {
        core::future::ready(Ok(Decision::default()))
    }

    async fn close(&self, deadline: Duration) -> bool {
        self.0.fetch_add(deadline.as_secs(), Ordering::Relaxed);
        deadline > SECOND
    }
}

#[test]
fn shared_and_boxed_stores_forward_close() {
    let closed = Arc::new(AtomicU64::new(0));
    let store = Closing(Arc::clone(&closed));
    assert!(!block_on(Arc::new(store.clone()).close(SECOND)));
    assert!(block_on(BoxStore::new(store).close(SECOND * 2)));
    assert_eq!(closed.load(Ordering::Relaxed), 3);
    assert!(block_on(MemoryStore::new().close(SECOND)));
}

#[test]
fn store_failure_is_the_source() {
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::error("down"));
    let error = block_on(Limiter::new(store, "limit", Quota::per_second(1)).until_ready("ann"))
        .unwrap_err();
    assert!(matches!(error, NotReady::Store(_)));
    assert_eq!(
        core::error::Error::source(&error).unwrap().to_string(),
        "down"
    );
}

#[test]
fn equal_values_of_types_share_key() {
    let limiter = Limiter::new(MemoryStore::new(), "hour", Quota::per_hour(100));
    let left = |answer: tower_quota_core::Answer| answer.remaining();
    let numbers = [
        left(limiter.check_now(&7)),
        left(limiter.check_now(&7_u8)),
        left(limiter.check_now(&7_u16)),
        left(limiter.check_now(&7_u32)),
        left(limiter.check_now(&7_u64)),
        left(limiter.check_now(&7_usize)),
        left(limiter.check_now(&7_i8)),
        left(limiter.check_now(&7_i16)),
        left(limiter.check_now(&7_i64)),
        left(limiter.check_now(&&7_u64)),
    ];
    assert_eq!(numbers, [99, 98, 97, 96, 95, 94, 93, 92, 91, 90]);
    assert_eq!(left(limiter.check_now(&-7)), 99);
    let texts = [
        left(limiter.check_now("ann")),
        left(limiter.check_now(&String::from("ann"))),
        left(limiter.check_now(&std::sync::Arc::<str>::from("ann"))),
        left(limiter.check_now(&std::borrow::Cow::from("ann"))),
        left(limiter.check_now(&b"ann".to_vec())),
        left(limiter.check_now(b"ann")),
        left(limiter.check_now(b"ann".as_slice())),
        left(limiter.check_now(&Key::new(Name::new("hour"), b"ann"))),
    ];
    assert_eq!(texts, [99, 98, 97, 96, 95, 94, 93, 92]);
    let in_one_network: [IpAddr; 2] =
        ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().unwrap());
    assert_eq!(
        in_one_network.map(|address| left(limiter.check_now(&address))),
        [99, 98]
    );
    assert_eq!(left(limiter.check_now(&Key::EVERYONE)), 99);
}
