//! Tests floods of one client through several caches, in virtual time. All calls take equally long.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tower_quota_core::{
    Charge, Clock, Decision, Operation, OwnedCharge, Quota, RefusalCache, Store, Timestamp,
};
use tower_quota_testkit::{ManualClock, ModelStore, block_on};

use crate::client;

/// The time from an instance to the store, and back.
const ONE_WAY: Duration = Duration::from_millis(1);

type Slot = Arc<Mutex<Option<Decision>>>;

/// A call in flight to the store.
struct Sent {
    arrives_at: Timestamp,
    operation: Operation,
    charges: Vec<OwnedCharge>,
    answer: Slot,
}

/// A distant store, which decides a call at its arrival.
#[derive(Clone)]
struct DistantStore {
    clock: ManualClock,
    sent: Arc<Mutex<VecDeque<Sent>>>,
}

struct Answer(Slot);

impl Future for Answer {
    type Output = Result<Decision, std::convert::Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = locked(&self.0).take();
        answer.map_or(Poll::Pending, |decision| Poll::Ready(Ok(decision)))
    }
}

impl Store for DistantStore {
    type Error = std::convert::Infallible;
    type Future = Answer;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Answer {
        let answer = Slot::default();
        locked(&self.sent).push_back(Sent {
            arrives_at: self.clock.now() + ONE_WAY,
            operation,
            charges: charges.iter().map(OwnedCharge::from).collect(),
            answer: Arc::clone(&answer),
        });
        Answer(answer)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the first item of a queue if it is due.
fn pop_if<T>(queue: &mut VecDeque<T>, is_due: impl Fn(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_due) {
        queue.pop_front()
    } else {
        None
    }
}

type BoxAnswer = Pin<Box<dyn Future<Output = Result<Decision, std::convert::Infallible>> + Send>>;

/// The result of a flood.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    requests: u64,
    /// The number of checks that the store has decided in each second.
    decided: Vec<u64>,
    admitted: u64,
}

/// Sends a request every `pause` for some seconds, to one of the instances in turn.
///
/// The store must also refuse each request that a cache refuses, at the instant at which the
/// request would have arrived. All other requests must have an answer after one round trip.
fn flood(quota: &Quota, instances: usize, pause: Duration, seconds: u64) -> Outcome {
    let clock = ManualClock::default();
    let model = ModelStore::with_clock(clock.clone());
    let store = DistantStore {
        clock: clock.clone(),
        sent: Arc::default(),
    };
    let caches: Vec<_> = (0..instances)
        .map(|_| RefusalCache::with_clock(store.clone(), clock.clone()))
        .collect();
    let key = client(1);
    let start = clock.now();
    let mut outcome = Outcome::default();
    let mut waiting: VecDeque<(Timestamp, BoxAnswer)> = VecDeque::new();
    let mut checked: VecDeque<Answer> = VecDeque::new();
    while clock.now().since(start) < Duration::from_secs(seconds) {
        let now = clock.now();
        while let Some(sent) = pop_if(&mut locked(&store.sent), |sent| sent.arrives_at <= now) {
            let charges: Vec<Charge<'_>> =
                sent.charges.iter().map(OwnedCharge::as_charge).collect();
            let Ok(decision) = block_on(model.apply(sent.operation, &charges));
            if sent.operation == Operation::Check {
                let second = usize::try_from(now.since(start).as_secs()).unwrap();
                outcome.decided.resize(second + 1, 0);
                outcome.decided[second] += 1;
            }
            *locked(&sent.answer) = Some(decision);
        }
        while let Some(mut refused) = checked.pop_front() {
            let context = &mut Context::from_waker(Waker::noop());
            match Pin::new(&mut refused).poll(context) {
                Poll::Ready(Ok(expected)) => {
                    assert!(!expected.is_allowed(), "a false refusal: {expected:?}");
                }
                Poll::Pending => {
                    checked.push_front(refused);
                    break;
                }
            }
        }
        while let Some((_, mut answer)) = pop_if(&mut waiting, |waiting| waiting.0 <= now) {
            let context = &mut Context::from_waker(Waker::noop());
            let Poll::Ready(Ok(decision)) = answer.as_mut().poll(context) else {
                unreachable!("a request waited for longer than a round trip")
            };
            outcome.admitted += u64::from(decision.is_allowed());
        }
        outcome.requests += 1;
        let number = usize::try_from(outcome.requests).unwrap();
        let cost = 1 + u64::from(outcome.requests.is_multiple_of(7));
        let charge = [Charge::new("limit", quota, &key).cost(cost)];
        let cache = &caches[number % instances];
        match cache.refusal(&charge) {
            Some(_) => checked.push_back(store.apply(Operation::Peek, &charge)),
            None => {
                let (answer, _) = cache.send(&charge);
                waiting.push_back((now + ONE_WAY * 2, Box::pin(answer)));
            }
        }
        clock.advance(pause);
    }
    outcome
}

#[test]
fn flood_costs_few_decisions_a_second() {
    for quota in [
        Quota::per_minute(6),
        Quota::per_second(20),
        Quota::per_hour(1),
        Quota::per_second(10).sliding_window(),
        Quota::per_second(10).sliding_log(),
        Quota::per_second(10).fixed_window(),
    ] {
        let outcome = flood(&quota, 1, Duration::from_micros(10), 4);
        println!("{quota:?}: {outcome:?}");
        // The caches know no refusal in the first round trip.
        assert!(outcome.decided[0] <= 400, "{outcome:?}");
        assert!(
            outcome.decided[1..].iter().all(|calls| *calls <= 200),
            "{outcome:?}"
        );
    }
}

/// Checks units that come back within a round trip, under fifteen times as many requests from four
/// instances.
#[test]
fn fast_bucket_is_used_up_without_waits() {
    for quota in [Quota::per_second(1_000), Quota::per_second(1_000).burst(20)] {
        let outcome = flood(&quota, 4, Duration::from_micros(66), 3);
        println!("{quota:?}: {outcome:?}");
        let decided: u64 = outcome.decided.iter().sum();
        assert!(decided * 2 < outcome.requests, "{outcome:?}");
        // All units are used, except for units that requests of two units leave.
        assert!(outcome.admitted > 2_500, "{outcome:?}");
    }
}
