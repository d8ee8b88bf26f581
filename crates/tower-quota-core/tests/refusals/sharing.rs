//! Requests that wait for a call under way, which probably takes the last unit of their limit.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tower_quota_core::{
    Charge, Decision, Key, Left, LimitStatus, Operation, Outcome, Quota, RefusalCache, Store,
};
use tower_quota_testkit::{
    ManualClock, ScriptedAnswer, ScriptedError, ScriptedStore, SharedStore, block_on,
};

use crate::{MINUTE, client};

const UNIT: Duration = Duration::from_secs(10);

type Answer = Pin<Box<dyn Future<Output = Result<Decision, ScriptedError>> + Send>>;

/// A client that has used its quota up, and a number of units that came back.
struct Exhausted {
    cache: RefusalCache<SharedStore<ScriptedStore>, ManualClock>,
    store: ScriptedStore,
    quota: Quota,
}

impl Exhausted {
    fn new(quota: Quota, units: u32) -> Self {
        let store = ScriptedStore::new();
        let cache = RefusalCache::with_clock(SharedStore(store.clone()), store.clock().clone());
        let setting = Self {
            cache,
            store,
            quota,
        };
        for cost in [6, 1] {
            block_on(setting.begin(cost)).unwrap();
        }
        setting.store.clock().advance(UNIT * units);
        setting.store.set_default(ScriptedAnswer::memory().held());
        setting
    }

    fn begin(&self, cost: u64) -> Answer {
        Box::pin(
            self.cache
                .check(&[Charge::new("minute", &self.quota, &client(1)).cost(cost)]),
        )
    }

    /// Begins a check and polls it once.
    fn start(&self) -> Answer {
        let mut answer = self.begin(1);
        assert!(poll(&mut answer).is_pending());
        answer
    }

    fn asked(&self) -> usize {
        self.store.operations().len()
    }
}

fn poll(answer: &mut Answer) -> Poll<Result<Decision, ScriptedError>> {
    answer
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn is_allowed(answer: Answer) -> bool {
    block_on(answer).unwrap().is_allowed()
}

#[test]
fn each_returned_unit_costs_one_call() {
    for units in 1..=3 {
        let setting = Exhausted::new(MINUTE, units);
        let before = setting.asked();
        let answers: Vec<Answer> = (0..9).map(|_| setting.start()).collect();
        assert_eq!(setting.asked() - before, units as usize);
        setting.store.release();
        let allowed = answers
            .into_iter()
            .map(is_allowed)
            .filter(|is_allowed| *is_allowed)
            .count();
        assert_eq!(
            (allowed, setting.asked() - before),
            (units as usize, units as usize)
        );
    }
}

#[test]
fn waiting_requests_ask_if_more_is_left() {
    let setting = Exhausted::new(MINUTE, 1);
    // Another process gives all units back.
    let key = client(1);
    let Ok(_) = setting
        .store
        .memory()
        .apply(Operation::Reset, &[Charge::new("minute", &MINUTE, &key)])
        .into_inner();
    let before = setting.asked();
    let answers: Vec<Answer> = (0..3).map(|_| setting.start()).collect();
    assert_eq!(setting.asked(), before + 1);
    setting.store.set_default(ScriptedAnswer::memory());
    setting.store.release();
    assert!(answers.into_iter().all(is_allowed));
}

#[test]
fn waiting_requests_ask_if_the_call_fails() {
    // Each by itself: a store that fails may fail again, and the waits would add up.
    let setting = Exhausted::new(MINUTE, 1);
    setting.store.push(ScriptedAnswer::error("broken").held());
    let (first, mut waiting) = (setting.start(), [setting.start(), setting.start()]);
    let before = setting.asked();
    setting.store.release();
    assert_eq!(block_on(first).unwrap_err().to_string(), "broken");
    assert!(waiting.iter_mut().all(|answer| poll(answer).is_pending()));
    assert_eq!(setting.asked(), before + 2);
    setting.store.release();
    assert_eq!(waiting.map(is_allowed), [true, false]);
}

/// Answers calls by refusals that are over when they arrive.
#[test]
fn waiting_requests_wait_twice_at_most() {
    let setting = Exhausted::new(MINUTE, 1);
    let left = Left::new(0, Duration::from_secs(60));
    let outcome = Outcome::Refuse(Duration::from_micros(1));
    let early = LimitStatus {
        name: "minute".into(),
        limit: 6,
        left,
        taken: 0,
        outcome,
        is_shadow: false,
    };
    setting
        .store
        .set_default(ScriptedAnswer::statuses([early]).held());
    let mut answers: Vec<Answer> = (0..9).map(|_| setting.start()).collect();
    // One call; then one of the eight that wait; then the other seven, which have waited twice.
    for calls in [1, 1, 7] {
        assert_eq!(setting.store.held(), calls);
        setting.store.clock().advance(Duration::from_micros(2));
        setting.store.release();
        answers.retain_mut(|answer| poll(answer).is_pending());
    }
    assert!(answers.is_empty());
}

#[test]
fn silent_call_is_joined_for_20_ms() {
    let setting = Exhausted::new(MINUTE, 1);
    let before = setting.asked();
    let lost: Vec<Answer> = (0..3).map(|_| setting.start()).collect();
    setting.store.clock().advance(Duration::from_millis(20));
    let later: Vec<Answer> = (0..3).map(|_| setting.start()).collect();
    assert_eq!(
        setting.asked(),
        before + 2,
        "one request asks again, and the others wait for that"
    );
    drop((lost, later));
}

#[test]
fn call_panic_reaches_only_its_request() {
    let inner = ScriptedStore::new();
    let store = Fragile {
        store: inner.clone(),
        breaks: Arc::default(),
    };
    let (breaks, key) = (Arc::clone(&store.breaks), client(1));
    let cache = RefusalCache::with_clock(store, inner.clock().clone());
    let check = |cost| cache.check(&[Charge::new("minute", &MINUTE, &key).cost(cost)]);
    for cost in [6, 1] {
        block_on(check(cost)).unwrap();
    }
    inner.clock().advance(UNIT);
    breaks.store(true, Ordering::Relaxed);
    let first = check(1);
    let second = check(1);
    breaks.store(false, Ordering::Relaxed);
    // The first call took the unit before it broke.
    assert!(!block_on(second).unwrap().is_allowed());
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(first))).is_err());
}

/// A store whose answers may break.
struct Fragile {
    store: ScriptedStore,
    breaks: Arc<AtomicBool>,
}

impl Store for Fragile {
    type Error = ScriptedError;
    type Future = Answer;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let (answer, breaks) = (
            self.store.apply(operation, charges),
            self.breaks.load(Ordering::Relaxed),
        );
        Box::pin(async move {
            assert!(!breaks, "the store is broken");
            answer.await
        })
    }
}

#[test]
fn cache_of_no_age_shares_no_calls() {
    let mut setting = Exhausted::new(MINUTE, 1);
    setting.cache = setting.cache.max_age(Duration::ZERO);
    let before = setting.asked();
    let answers: Vec<Answer> = (0..5).map(|_| setting.start()).collect();
    assert_eq!(setting.asked(), before + 5);
    setting.store.release();
    assert_eq!(
        answers
            .into_iter()
            .map(is_allowed)
            .filter(|is_allowed| *is_allowed)
            .count(),
        1
    );
}

/// Asks as the layer does, which treats an error in its own way and has the known refusal beside it.
#[test]
fn store_failure_reaches_each_caller() {
    let setting = Exhausted::new(MINUTE, 0);
    setting
        .store
        .clock()
        .advance(RefusalCache::<ScriptedStore>::DEFAULT_MAX_AGE);
    setting
        .store
        .set_default(ScriptedAnswer::error("broken").held());
    let (key, before) = (client(1), setting.asked());
    let asked = [(); 3].map(|()| setting.cache.ask(&[Charge::new("minute", &MINUTE, &key)]));
    assert_eq!(setting.asked(), before + 1);
    setting.store.set_default(ScriptedAnswer::error("broken"));
    setting.store.release();
    for (answer, known) in asked {
        assert!(block_on(answer).is_err() && known.is_some());
    }
}

/// Waits for the second of two requests, whose first one is not polled or dropped.
#[test]
fn waiting_request_needs_no_other_task() {
    for drops in [false, true] {
        let setting = Exhausted::new(MINUTE, 1);
        let first = setting.begin(1);
        let before = setting.asked();
        let second = setting.start();
        let kept = (!drops).then_some(first);
        setting.store.release();
        // Its unit was taken; it is lost if the first request was dropped.
        assert!(!is_allowed(second));
        assert_eq!(setting.asked(), before);
        assert!(kept.is_none_or(is_allowed));
    }
}

#[test]
fn abandoned_call_is_forgotten() {
    let setting = Exhausted::new(MINUTE, 1);
    drop((setting.start(), setting.start()));
    assert_eq!(setting.store.held(), 0);
    let before = setting.asked();
    let next = setting.start();
    assert_eq!(setting.asked(), before + 1);
    setting.store.release();
    assert!(!is_allowed(next), "the dropped call has taken the unit");
}

#[test]
fn other_costs_and_quotas_are_not_shared() {
    let setting = Exhausted::new(MINUTE, 4);
    let before = setting.asked();
    let answers = [setting.begin(1), setting.begin(2), setting.begin(1)];
    assert_eq!(setting.asked(), before + 3, "four units came back");
    let raised = Exhausted {
        quota: Quota::per_minute(60),
        cache: setting.cache.clone(),
        store: setting.store.clone(),
    };
    drop(raised.begin(1));
    assert_eq!(setting.asked(), before + 4);
    setting.store.release();
    assert!(answers.into_iter().all(is_allowed));
}

#[test]
fn impossible_costs_are_not_shared() {
    let setting = Exhausted::new(MINUTE, 1);
    let before = setting.asked();
    let answers = [setting.begin(7), setting.begin(7)];
    assert_eq!(setting.asked(), before + 2);
    setting.store.release();
    assert!(
        answers
            .into_iter()
            .all(|answer| block_on(answer).unwrap().outcome() == Outcome::Never)
    );
}

#[test]
fn returned_unit_of_a_window_costs_one_call() {
    let setting = Exhausted::new(MINUTE.sliding_window(), 0);
    let retry = block_on(setting.begin(1)).unwrap().retry_after().unwrap();
    setting.store.clock().advance(retry);
    let before = setting.asked();
    let answers: Vec<Answer> = (0..9).map(|_| setting.start()).collect();
    setting.store.release();
    let allowed = answers
        .into_iter()
        .map(is_allowed)
        .filter(|is_allowed| *is_allowed)
        .count();
    assert_eq!((allowed, setting.asked() - before), (1, 1));
}

/// Takes the last unit: the answer says when the next one fits.
#[test]
fn exhausted_window_is_known_from_an_admission() {
    for quota in [
        MINUTE.sliding_window(),
        MINUTE.sliding_log(),
        MINUTE.fixed_window(),
    ] {
        let setting = Exhausted::new(quota, 0);
        setting.store.set_default(ScriptedAnswer::memory());
        setting.store.clock().advance(UNIT * 12);
        for cost in [5, 1] {
            assert!(is_allowed(setting.begin(cost)));
        }
        let (before, key) = (setting.asked(), client(1));
        let Ok(expected) = setting
            .store
            .memory()
            .apply(Operation::Peek, &[Charge::new("minute", &quota, &key)])
            .into_inner();
        assert_eq!(
            block_on(setting.begin(1)).unwrap().outcome(),
            expected.outcome(),
            "{quota:?}"
        );
        assert_eq!(setting.asked(), before, "{quota:?}");
    }
}

/// Lets more come back than the memory can know of: one call at a time would make the others wait for nothing.
#[test]
fn window_with_units_back_is_asked_at_once() {
    for quota in [MINUTE.sliding_window(), MINUTE.sliding_log()] {
        let setting = Exhausted::new(quota, 12);
        setting.store.set_default(ScriptedAnswer::memory());
        for _ in 0..6 {
            assert!(is_allowed(setting.begin(1)));
            setting.store.clock().advance(UNIT);
        }
        setting.store.clock().advance(UNIT * 3);
        setting.store.set_default(ScriptedAnswer::memory().held());
        let before = setting.asked();
        let answers: Vec<Answer> = (0..3).map(|_| setting.start()).collect();
        assert_eq!(setting.asked() - before, 3, "{quota:?}");
        setting.store.release();
        assert!(answers.into_iter().all(is_allowed), "{quota:?}");
    }
}

/// Sends requests of many clients, who have a window in common of which only an old status is known.
#[test]
fn common_window_makes_no_client_wait() {
    let setting = Exhausted::new(MINUTE, 0);
    let (everyone, second) = (Key::EVERYONE, Quota::per_second(1_000).sliding_window());
    setting.cache.remember_statuses(true);
    setting.store.set_default(ScriptedAnswer::memory());
    let check = |number, cost| -> Answer {
        let key = client(number);
        let all = Charge::new("all", &second, &everyone).cost(cost);
        Box::pin(
            setting
                .cache
                .check(&[all, Charge::new("minute", &MINUTE, &key)]),
        )
    };
    assert!(is_allowed(check(2, 995)));
    setting.store.clock().advance(Duration::from_millis(1_600));
    setting.store.set_default(ScriptedAnswer::memory().held());
    let before = setting.asked();
    let answers: Vec<Answer> = (100..200).map(|number| check(number, 1)).collect();
    assert_eq!(setting.asked() - before, 100);
    setting.store.release();
    assert!(answers.into_iter().all(is_allowed));
}
