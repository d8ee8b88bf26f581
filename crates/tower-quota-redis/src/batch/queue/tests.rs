//! Tests of the queue, with instants passed in.

use core::num::NonZeroUsize;
use std::sync::LazyLock;

use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Timestamp};

use super::super::caller::now;
use super::*;
use crate::breaker::DEFAULT_FAILURES;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::question::Question;

const DEADLINE: Duration = Duration::from_millis(60);

/// Made once: finding the tags takes longer than all else in these tests.
static KEYS: LazyLock<KeyNames> =
    LazyLock::new(|| KeyNames::new("quota", None, false, NonZeroUsize::MIN).unwrap());

pub(super) type Answered = oneshot::Receiver<Result<Decision, RedisStoreError>>;

fn queue() -> Queue {
    Queue::new(2, DEADLINE, Breaker::new(DEFAULT_FAILURES, DEADLINE))
}

/// Makes a decision of weight 1.
pub(super) fn pending(expiry: Option<Instant>) -> (Pending, Answered) {
    pending_of(Operation::Check, expiry)
}

fn pending_of(operation: Operation, expiry: Option<Instant>) -> (Pending, Answered) {
    let (quota, key) = (Quota::per_hour(10), Key::owned(Name::new("user"), "ann"));
    let question = Question::new(operation, &[Charge::new("hour", &quota, &key)], &KEYS);
    let (answer, answered) = oneshot::channel();
    (
        Pending {
            question,
            answer,
            expiry,
        },
        answered,
    )
}

fn fill(queue: &mut Queue, decisions: usize, expiry: Instant) -> Vec<Answered> {
    let each = (0..decisions).map(|_| {
        let (pending, answered) = pending(Some(expiry));
        queue.push(pending);
        answered
    });
    each.collect()
}

fn ended(queue: &mut Queue, batch: &Batch, began: Instant, ended: Instant) {
    let span = CallSpan {
        began,
        weight: batch.weight,
        load: batch.load,
    };
    assert!(
        queue
            .call_ended(&span, Some(CallEnd::Answered), ended)
            .is_empty()
    );
}

#[test]
fn late_and_abandoned_decisions_are_not_sent() {
    let (start, mut queue, mut callers) = (now(), queue(), Vec::new());
    for millis in [Some(10), Some(20), Some(30), Some(40), None] {
        let (pending, answered) =
            pending(millis.map(|millis| start + Duration::from_millis(millis)));
        queue.push(pending);
        callers.push(answered);
    }
    drop(callers.remove(2));
    let batch = queue.take_batch(start + Duration::from_millis(20));
    let expiries = |decisions: &[Pending]| -> Vec<_> {
        decisions
            .iter()
            .map(|pending| pending.expiry.map(|expiry| (expiry - start).as_millis()))
            .collect()
    };
    assert_eq!(expiries(&batch.decisions), [Some(40), None]);
    assert_eq!(expiries(&batch.late), [Some(10), Some(20)]);
    assert!(queue.take_batch(start).decisions.is_empty());
}

#[test]
fn late_and_abandoned_refunds_are_sent() {
    let (start, mut queue) = (now(), queue());
    let refund = Operation::Refund {
        taken_at: Timestamp::EPOCH,
    };
    let (late, _caller) = pending_of(refund, Some(start));
    queue.push(late);
    queue.push(pending_of(refund, None).0);
    let batch = queue.take_batch(start + DEADLINE);
    assert_eq!(
        (
            batch.decisions.len(),
            batch.late.len(),
            queue.waiting_refunds
        ),
        (2, 0, 0)
    );
}

#[test]
fn waiting_refunds_are_bounded() {
    let (start, mut queue) = (now(), queue());
    let refund = Operation::Refund {
        taken_at: Timestamp::EPOCH,
    };
    queue.waiting_refunds = MOST_REFUNDS - 1;
    assert_eq!(queue.admit(refund, start), Ok(()));
    queue.push(pending_of(refund, None).0);
    assert_eq!(queue.admit(refund, start), Err(NotSent::Overloaded));
    assert_eq!(queue.admit(Operation::Check, start), Ok(()));
}

#[test]
fn decision_without_time_is_not_sent() {
    let (start, mut queue) = (now(), queue());
    let callers = fill(&mut queue, 1, start + DEADLINE);
    let batch = queue.take_batch(start);
    let now = start + DEADLINE / 2;
    ended(&mut queue, &batch, start, now);
    ended(&mut queue, &Batch::default(), start, now);
    let more = fill(&mut queue, 1, now + DEADLINE / 3);
    let batch = queue.take_batch(now);
    assert_eq!(
        (batch.decisions.len(), batch.late.len()),
        (0, 1),
        "a call takes half the deadline"
    );
    drop((callers, more));
}

#[test]
fn weight_under_way_stays_below_the_limit() {
    let (mut now, mut queue) = (now(), queue());
    let _callers = fill(&mut queue, 10_000, now + 100 * DEADLINE);
    // Each call takes 1 ms for each decision under way, so that at most 20 may be.
    for _ in 0..20 {
        let batches = [queue.take_batch(now), queue.take_batch(now)];
        let weight = batches[0].weight + batches[1].weight;
        assert_eq!(queue.weight_under_way, weight);
        let began = now;
        now += Duration::from_millis(weight as u64);
        batches
            .iter()
            .for_each(|batch| ended(&mut queue, batch, began, now));
    }
    let limit = queue.flow.limit();
    assert!((16..=24).contains(&limit), "{limit}");
    let (first, second) = (queue.take_batch(now), queue.take_batch(now));
    assert!(first.weight + second.weight <= limit + 1 && first.load == Load::HeldBack);
    assert!(!queue.has_work(), "as much is under way as may be");
}

#[test]
fn opening_breaker_returns_waiting_decisions() {
    let (start, mut queue) = (now(), queue());
    let _callers = fill(&mut queue, 200, start + 100 * DEADLINE);
    let ticket = queue.push(pending(None).0);
    let mut now = start;
    for failure in 1..=DEFAULT_FAILURES.get() {
        let span = CallSpan {
            began: now,
            weight: 0,
            load: Load::Shared,
        };
        now += DEADLINE;
        let returned = queue.call_ended(&span, Some(CallEnd::Broken), now);
        assert_eq!(
            returned.len(),
            if failure == DEFAULT_FAILURES.get() {
                201
            } else {
                0
            }
        );
    }
    assert!(!queue.is_waiting(ticket) && queue.waiting_weight == 0);
    assert_eq!(
        queue.admit(Operation::Check, now),
        Err(NotSent::BreakerOpen)
    );

    let later = now + 100 * DEADLINE;
    assert_eq!(queue.admit(Operation::Check, later), Ok(()), "the trial");
    queue.call_ended(
        &CallSpan {
            began: later,
            weight: 0,
            load: Load::Shared,
        },
        Some(CallEnd::Answered),
        later,
    );
    let mut stats = RedisStats::default();
    queue.add_to(&mut stats);
    assert_eq!(
        (
            stats.breaker_openings,
            stats.breaker_closings,
            stats.closed_partitions
        ),
        (1, 1, 1)
    );
}

#[test]
fn trial_whose_caller_left_gives_way() {
    let (start, mut queue) = (now(), queue());
    for failure in 0..DEFAULT_FAILURES.get() {
        let began = start + DEADLINE * failure;
        queue.call_ended(
            &CallSpan {
                began,
                weight: 0,
                load: Load::Shared,
            },
            Some(CallEnd::Broken),
            began + DEADLINE,
        );
    }
    let later = start + 100 * DEADLINE;
    assert_eq!(queue.admit(Operation::Check, later), Ok(()), "the trial");
    let callers = fill(&mut queue, 1, later + DEADLINE);
    assert_eq!(
        queue.admit(Operation::Check, later),
        Err(NotSent::BreakerOpen)
    );
    drop(callers);
    assert!(queue.take_batch(later).decisions.is_empty());
    assert_eq!(
        queue.admit(Operation::Check, later),
        Ok(()),
        "the next trial"
    );
    let _callers = fill(&mut queue, 1, later + DEADLINE);
    assert_eq!(queue.take_batch(later).decisions.len(), 1);
    assert!(queue.take_batch(later).decisions.is_empty());
    assert_eq!(
        queue.admit(Operation::Check, later),
        Err(NotSent::BreakerOpen),
        "it is under way"
    );
}

#[test]
fn stranded_decisions_leave_refunds() {
    let start = now();
    for has_successor in [true, false] {
        let mut queue = queue();
        let _callers = fill(&mut queue, 3, start + DEADLINE);
        queue.push(
            pending_of(
                Operation::Refund {
                    taken_at: Timestamp::EPOCH,
                },
                None,
            )
            .0,
        );
        let _last = fill(&mut queue, 1, start + DEADLINE);
        let slot = queue.take_slot().unwrap();
        assert_eq!(
            queue.take_stranded(has_successor, start).len(),
            0,
            "a task has a slot"
        );
        queue.free_slot(slot);
        assert_eq!(
            queue.take_stranded(has_successor, start).len(),
            if has_successor { 4 } else { 5 }
        );
        assert_eq!(queue.waiting_refunds, usize::from(has_successor));
        let batch = queue.take_batch(start);
        assert_eq!(
            (batch.decisions.len(), queue.waiting_weight),
            (usize::from(has_successor), 0)
        );
    }
}

#[test]
fn long_queue_refuses_on_arrival() {
    let (start, mut queue) = (now(), queue());
    let _callers = fill(&mut queue, 10_000, start + 100 * DEADLINE);
    assert_eq!(
        queue.admit(Operation::Check, start),
        Ok(()),
        "nothing is known of the server yet"
    );
    let batch = queue.take_batch(start);
    let now = start + DEADLINE / 3;
    ended(&mut queue, &batch, start, now);
    ended(&mut queue, &Batch::default(), start, now);
    assert_eq!(queue.admit(Operation::Check, now), Err(NotSent::Overloaded));
    let refund = Operation::Refund {
        taken_at: Timestamp::EPOCH,
    };
    assert_eq!(
        queue.admit(refund, now),
        Ok(()),
        "what was taken for nothing is given back"
    );
}

#[test]
fn abandoned_direct_call_delays_no_others() {
    let (start, mut queue) = (now(), queue());
    let expiry = start + DEADLINE;
    // As after the breaker has closed: one decision may be under way.
    queue.flow.restart(start);
    let _direct = fill(&mut queue, 1, expiry);
    let slot = queue.take_direct_slot().unwrap();
    assert_eq!(queue.take_batch(start).decisions.len(), 1);
    let _other = fill(&mut queue, 1, expiry);
    assert!(queue.take_direct_slot().is_none());
    assert!(queue.has_work());
    let other = queue.take_slot().unwrap();
    assert_eq!(queue.take_batch(start).decisions.len(), 1);
    // The limit holds among the calls of tasks.
    let _third = fill(&mut queue, 1, expiry);
    assert!(!queue.has_work());
    queue.free_slot(other);
    queue.free_slot(slot);
}
