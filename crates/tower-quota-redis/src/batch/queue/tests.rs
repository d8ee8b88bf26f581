mod overload;

use core::num::NonZeroUsize;
use std::sync::LazyLock;

use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Timestamp};

use super::*;
use crate::breaker::DEFAULT_FAILURES;
use crate::clock::now;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::store_request::StoreRequest;

const DEADLINE: Duration = Duration::from_millis(60);

/// The names of keys, made once because finding the tags is slow.
static KEYS: LazyLock<KeyNames> =
    LazyLock::new(|| KeyNames::new("quota", None, false, NonZeroUsize::MIN).unwrap());

pub(super) type Answered = oneshot::Receiver<Result<Decision, RedisStoreError>>;

fn queue() -> Queue {
    Queue::new(2, 1, DEADLINE, Breaker::new(DEFAULT_FAILURES, DEADLINE))
}

pub(super) fn pending(arrived: Instant) -> (Pending, Answered) {
    pending_of(Operation::Check, arrived)
}

fn pending_of(operation: Operation, arrived: Instant) -> (Pending, Answered) {
    pending_with(Quota::per_hour(10), operation, arrived)
}

fn pending_with(quota: Quota, operation: Operation, arrived: Instant) -> (Pending, Answered) {
    let key = Key::owned(Name::new("user"), "ann");
    let request = StoreRequest::new(operation, &[Charge::new("hour", &quota, &key)], &KEYS);
    let (answer, answered) = oneshot::channel();
    let pending = Pending {
        number: 0,
        request,
        answer,
        arrived,
    };
    (pending, answered)
}

fn admit(queue: &mut Queue, operation: Operation, now: Instant) -> Result<(), NotSent> {
    queue.admit(&pending_of(operation, now).0.request.template, now)
}

fn fill(queue: &mut Queue, decisions: usize, arrived: Instant) -> Vec<Answered> {
    let each = (0..decisions).map(|_| {
        let (pending, answered) = pending(arrived);
        queue.push(pending);
        answered
    });
    each.collect()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn waits(decisions: &[Pending], now: Instant) -> Vec<u128> {
    let waits = decisions.iter();
    waits
        .map(|pending| (now - pending.arrived).as_millis())
        .collect()
}

fn send(queue: &mut Queue, now: Instant) -> Option<Batch> {
    if !queue.begin_sender(now) {
        return None;
    }
    match queue.next_step(now) {
        Step::Send(batch) => Some(batch),
        _ => {
            queue.sender_ended(false);
            None
        }
    }
}

fn end(queue: &mut Queue, weight: usize, end: CallEnd, began: Instant, now: Instant) -> usize {
    queue.calls_under_way += 1;
    queue.weight_under_way += weight;
    let under_way = queue.weight_under_way;
    let span = CallSpan {
        began,
        weight,
        under_way,
    };
    queue
        .call_ended(&span, Some(end), now)
        .map_or(0, |returned| returned.len())
}

const REFUND: Operation = Operation::Refund {
    taken_at: Timestamp::EPOCH,
};

#[test]
fn newest_leave_first_after_half_the_deadline() {
    let start = now();
    let sent_after = |wait: Duration| {
        let mut queue = queue();
        let _callers: Vec<Answered> = [0, 10, 20]
            .into_iter()
            .flat_map(|after| fill(&mut queue, 1, start + millis(after)))
            .collect();
        // The window has room for two decisions.
        queue.weight_under_way = queue.window.limit() - 2;
        waits(&queue.take_batch(start + wait).decisions, start + wait)
    };
    assert_eq!(sent_after(millis(30)), [30, 20]);
    assert_eq!(sent_after(millis(31)), [21, 11]);
}

#[test]
fn expired_and_abandoned_decisions_are_not_sent() {
    let (start, mut queue, mut callers) = (now(), queue(), Vec::new());
    for after in [0, 10, 20, 30] {
        callers.extend(fill(&mut queue, 1, start + millis(after)));
    }
    drop(callers.remove(2));
    let now = start + DEADLINE + millis(10);
    assert_eq!(waits(&queue.take_expired(now), now), [70, 60]);
    assert_eq!(waits(&queue.take_batch(now).decisions, now), [40]);
    assert_eq!(queue.waiting_weight, 0);
}

#[test]
fn late_and_abandoned_settlements_are_sent_first() {
    let taken_at = Timestamp::EPOCH;
    let surcharge = Operation::Surcharge { taken_at };
    for operation in [REFUND, Operation::Charge, surcharge] {
        let (start, mut queue) = (now(), queue());
        let _callers = fill(&mut queue, 1, start);
        let (late, _caller) = pending_of(operation, start);
        queue.push(late);
        queue.push(pending_of(operation, start).0);
        let now = start + 2 * DEADLINE;
        assert_eq!(queue.take_expired(now).len(), 1);
        assert_eq!(queue.take_batch(now).decisions.len(), 2);
        assert_eq!(queue.waiting_weight, 0);
    }
}

#[test]
fn late_renewal_is_not_sent() {
    let (start, mut queue) = (now(), queue());
    let taken_at = Timestamp::EPOCH;
    let (streams, renewal) = (Quota::concurrent(10), Operation::Renew { taken_at });
    let (late, _caller) = pending_with(streams, renewal, start);
    queue.push(late);
    queue.push(pending_with(streams, REFUND, start).0);
    let now = start + 2 * DEADLINE;
    assert_eq!(queue.take_expired(now).len(), 1);
    let sent = queue.take_batch(now).decisions;
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].request.template.operation, REFUND);
}

#[test]
fn waiting_settlements_are_bounded() {
    let (start, mut queue) = (now(), queue());
    for _ in 0..MOST_WAITING {
        assert_eq!(admit(&mut queue, REFUND, start), Ok(()));
        queue.push(pending_of(REFUND, start).0);
    }
    assert_eq!(admit(&mut queue, REFUND, start), Err(NotSent::Overloaded));
    let charge = Operation::Charge;
    assert_eq!(admit(&mut queue, charge, start), Err(NotSent::Overloaded));
    assert_eq!(admit(&mut queue, Operation::Check, start), Ok(()));
}

#[test]
fn waiting_decisions_are_bounded() {
    let (start, mut queue) = (now(), queue());
    let _callers = fill(&mut queue, MOST_WAITING, start);
    let refused = admit(&mut queue, Operation::Check, start);
    assert_eq!(refused, Err(NotSent::Overloaded));
    assert_eq!(admit(&mut queue, REFUND, start), Ok(()));
}

#[test]
fn far_server_has_more_calls_than_near() {
    let (start, mut queue) = (now(), queue());
    let mut callers = Vec::new();
    for _ in 0..2 {
        callers.extend(fill(&mut queue, 1, start));
        assert_eq!(send(&mut queue, start).unwrap().decisions.len(), 1);
    }
    callers.extend(fill(&mut queue, 10, start));
    assert!(queue.begin_sender(start));
    assert!(matches!(queue.next_step(start), Step::WaitUntil(due) if due == start + PACE));
    callers.extend(fill(&mut queue, 10, start));
    assert!(!queue.begin_sender(start), "one sender waits already");
    queue.has_paced();
    let later = start + PACE;
    assert!(matches!(queue.next_step(later), Step::Send(batch) if batch.weight == 20));
    // A full call does not wait.
    callers.extend(fill(&mut queue, MOST_WEIGHT, later));
    let room = queue.window.limit() - 22;
    assert_eq!(send(&mut queue, later).unwrap().weight, room);
}

#[test]
fn dropped_pacing_sender_leaves_its_turn() {
    let (start, mut queue) = (now(), queue());
    let mut callers = Vec::new();
    for _ in 0..2 {
        callers.extend(fill(&mut queue, 1, start));
        assert!(send(&mut queue, start).is_some());
    }
    callers.extend(fill(&mut queue, 1, start));
    assert!(queue.begin_sender(start));
    assert!(matches!(queue.next_step(start), Step::WaitUntil(_)));
    assert!(!queue.begin_sender(start), "one sender waits already");
    queue.sender_ended(true);
    assert!(queue.begin_sender(start));
}

#[test]
fn weight_in_flight_shrinks_for_slow_calls() {
    let (mut now, mut queue) = (now(), queue());
    let most = queue.window.limit();
    for calls in 1..=3 {
        let began = now;
        now += DEADLINE;
        for _ in 0..10 {
            end(&mut queue, 1, CallEnd::Late, began, now);
        }
        assert_eq!(queue.window.limit(), most >> calls);
    }
    queue.window = Window::new(DEADLINE);
    queue.window.restart();
    let limit = queue.window.limit();
    let _callers = fill(&mut queue, limit + 1, now);
    queue.weight_under_way = limit;
    assert!(!queue.begin_sender(now));
    queue.weight_under_way = limit - 1;
    assert!(queue.begin_sender(now));
    for _ in 0..2_000 {
        end(&mut queue, 128, CallEnd::Answered, now, now + DEADLINE / 2);
    }
    assert!(queue.window.limit() >= most);
}

#[test]
fn opening_breaker_returns_waiting_decisions() {
    let (start, mut queue) = (now(), queue());
    let _callers = fill(&mut queue, 200, start);
    let ticket = queue.push(pending(start).0);
    assert!(queue.is_waiting(ticket));
    let mut now = start;
    for failure in 1..=DEFAULT_FAILURES.get() {
        let began = now;
        now += DEADLINE;
        let returned = end(&mut queue, 0, CallEnd::Broken, began, now);
        let is_last = failure == DEFAULT_FAILURES.get();
        assert_eq!(returned, if is_last { 201 } else { 0 });
    }
    assert!(!queue.is_waiting(ticket) && queue.waiting_weight == 0);
    let refused = admit(&mut queue, Operation::Check, now);
    assert_eq!(refused, Err(NotSent::BreakerOpen));

    let later = now + 100 * DEADLINE;
    assert_eq!(
        admit(&mut queue, Operation::Check, later),
        Ok(()),
        "the probe"
    );
    end(&mut queue, 0, CallEnd::Answered, later, later);
    let mut stats = RedisStats::default();
    queue.add_to(&mut stats);
    let breaker = (stats.breaker_openings, stats.breaker_closings);
    assert_eq!((breaker, stats.closed_partitions), ((1, 1), 1));
}

#[test]
fn probe_whose_caller_left_gives_way() {
    let (start, mut queue) = (now(), queue());
    for failure in 0..DEFAULT_FAILURES.get() {
        let began = start + DEADLINE * failure;
        end(&mut queue, 0, CallEnd::Broken, began, began + DEADLINE);
    }
    let later = start + 100 * DEADLINE;
    let admit = |queue: &mut Queue| admit(queue, Operation::Check, later);
    assert_eq!(admit(&mut queue), Ok(()), "the probe");
    let callers = fill(&mut queue, 1, later);
    assert_eq!(admit(&mut queue), Err(NotSent::BreakerOpen));
    drop(callers);
    assert!(queue.take_batch(later).decisions.is_empty());
    assert_eq!(admit(&mut queue), Ok(()), "the next probe");
    let _callers = fill(&mut queue, 1, later);
    assert_eq!(queue.take_batch(later).decisions.len(), 1);
    assert!(queue.take_batch(later).decisions.is_empty());
    let refused = admit(&mut queue);
    assert_eq!(refused, Err(NotSent::BreakerOpen), "it is under way");
}

#[test]
fn stranded_decisions_leave_settlements() {
    let start = now();
    for has_successor in [true, false] {
        let mut queue = queue();
        let _callers = fill(&mut queue, 3, start);
        queue.push(pending_of(REFUND, start).0);
        let _last = fill(&mut queue, 1, start);
        assert!(queue.begin_sender(start));
        assert!(queue.take_stranded(has_successor, start).is_empty());
        queue.sender_ended(false);
        let stranded = queue.take_stranded(has_successor, start).len();
        assert_eq!(stranded, if has_successor { 4 } else { 5 });
        let left = queue.take_batch(start).decisions.len();
        assert_eq!(left, usize::from(has_successor));
        assert_eq!(queue.waiting_weight, 0);
    }
}
