//! Batches: several decisions in one call.
//!
//! Round trips are expensive; decisions inside one are cheap. A few calls may be under way at once, in slots; a
//! decision that finds a free slot leaves at once, and those that arrive while all slots are taken leave together in
//! the next call. No timer holds a decision back.
//!
//! 1. A call carries a bounded weight, so that it never occupies the server for more than about a millisecond.
//! 2. Each decision has a deadline and an outcome of its own. One whose caller has given up is not sent,
//!    unless it is a refund.
//! 3. A decision that cannot be answered in time is not sent: it is refused, on arrival if possible, and nothing is
//!    charged (`flow.rs`). So a server that is asked for more than it can do still answers as much as it can in time.
//! 4. Calls are tasks of their own: a caller that never polls again holds no slot. The exception is a decision that
//!    arrives while nothing else is going on, unless calls have a runtime of their own: its caller makes the call, in a
//!    slot kept for that, and saves two changes of task. If the caller leaves, a task finishes the call.
//! 5. The breaker stops asking a server whose calls fail (`breaker.rs`).
//!
//! | file | holds |
//! |---|---|
//! | `queue.rs` | waiting decisions, calls under way, and what may be sent, under one lock |
//! | `flow.rs` | the limit of the weight under way |
//! | `caller.rs` | the call itself, and its errors |
//! | `slot.rs` | the right to have a call under way |
//! | `direct.rs` | a call made by the caller of a decision |

mod call_span;
mod caller;
mod direct;
mod flow;
mod pending;
mod queue;
mod slot;

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::Value;
use tokio::sync::{SemaphorePermit, oneshot};
use tower_quota_core::{Decision, Operation};

use self::call_span::CallSpan;
pub(crate) use self::caller::Caller;
use self::caller::{end_of, now};
use self::direct::Direct;
use self::pending::Pending;
use self::queue::{Batch, NotSent, Queue, Ticket};
use self::slot::Slot;
use crate::breaker::Breaker;
use crate::error::RedisStoreError;
use crate::question::Question;
use crate::stats::RedisStats;
use crate::wire::Reply;

/// Takes decisions about the keys of one partition.
pub(crate) struct Batcher {
    caller: Caller,
    queue: Mutex<Queue>,
    /// Says whether it refused the last request that counted everyone, beside clients of other partitions.
    refuses_everyone: AtomicBool,
}

/// The part of the deadline for which a call waits for a slot that all partitions share.
const SHARED_SLOT_SHARE: u32 = 8;

type Outcome = Result<Decision, RedisStoreError>;

/// A decision that has been asked for.
struct Asked {
    ticket: Ticket,
    answered: oneshot::Receiver<Outcome>,
    /// The slot of a call that the caller is to make.
    slot: Option<Slot>,
}

impl Batcher {
    /// Creates a batcher with `slots` calls under way at once.
    pub(crate) fn new(caller: Caller, slots: usize, breaker: Breaker) -> Arc<Self> {
        let queue = Mutex::new(Queue::new(slots, caller.deadline, breaker));
        Arc::new(Self {
            caller,
            queue,
            refuses_everyone: AtomicBool::new(false),
        })
    }

    /// Decides, within the deadline. Fails at once while the breaker is open, and when an answer would come too late.
    pub(crate) async fn decide(self: &Arc<Self>, question: Question) -> Outcome {
        let caller = &self.caller;
        let is_refund = matches!(question.template.operation, Operation::Refund { .. });
        let asked = match self.ask(question, now()) {
            Ok(asked) => asked,
            Err(reason) => {
                if reason == NotSent::Overloaded {
                    // Without this, a caller that asks again at once would starve the tasks that read the answers.
                    tokio::task::yield_now().await;
                }
                return Err(caller.not_sent(reason));
            }
        };
        let answered = async {
            match asked.slot {
                Some(slot) => {
                    Direct::new(Batcher::drain(slot))
                        .until(asked.answered)
                        .await
                }
                None => asked.answered.await,
            }
        };
        match tokio::time::timeout(caller.deadline, answered).await {
            Ok(Ok(outcome)) => outcome,
            // The runtime that the call was made on was shut down under it.
            Ok(Err(_)) => Err(caller.cut_short()),
            // A refund that still waits will be sent.
            Err(_) if !is_refund && self.lock().is_waiting(asked.ticket) => {
                Err(caller.not_sent(NotSent::Overloaded))
            }
            Err(_) => Err(caller.too_late()),
        }
    }

    /// Makes a call without decisions. Its error says whether the server would make any.
    pub(crate) async fn try_call(&self) -> Result<(), RedisStoreError> {
        self.caller.call(0, core::iter::empty()).await.map(drop)
    }

    /// Returns whether it refused the last request that counted everyone.
    pub(crate) fn refuses_everyone(&self) -> bool {
        self.refuses_everyone.load(Ordering::Relaxed)
    }

    /// Notes whether it refuses a request that counts everyone.
    pub(crate) fn note_everyone(&self, is_refused: bool) {
        // Written only when it has changed, since every request reads it.
        if self.refuses_everyone() != is_refused {
            self.refuses_everyone.store(is_refused, Ordering::Relaxed);
        }
    }

    /// Returns whether the breaker is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().breaker.is_closed()
    }

    /// Returns the error that a decision would end in without being sent, if the breaker is open.
    pub(crate) fn refusal(&self) -> Option<RedisStoreError> {
        let is_admitted = self.lock_to_admit().breaker.would_admit(now());
        (!is_admitted).then(|| self.caller.not_sent(NotSent::BreakerOpen))
    }

    /// Returns whether nothing waits and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.lock();
        queue.len() == 0 && queue.calls_under_way() == 0
    }

    /// Adds the figures of this partition.
    pub(crate) fn add_to(&self, stats: &mut RedisStats) {
        self.lock().add_to(stats);
    }

    /// Has a question sent, in a call of its own if a slot is free.
    fn ask(self: &Arc<Self>, question: Question, now: Instant) -> Result<Asked, NotSent> {
        let operation = question.template.operation;
        let (answer, answered) = oneshot::channel();
        let pending = Pending {
            question,
            answer,
            expiry: now.checked_add(self.caller.deadline),
        };
        let (ticket, direct, slot) = {
            let mut queue = self.lock_to_admit();
            queue.admit(operation, now)?;
            let ticket = queue.push(pending);
            let is_busy = self.caller.shared_slots.available_permits() == 0;
            // A caller on another runtime would make timers there, which may end before the call.
            let is_elsewhere = self.caller.settings.runtime.is_some();
            let direct = if is_busy || is_elsewhere {
                None
            } else {
                queue.take_direct_slot()
            };
            let slot = if direct.is_none() && queue.has_work() {
                queue.take_slot()
            } else {
                None
            };
            (ticket, direct, slot)
        };
        if let Some(number) = slot {
            self.caller
                .settings
                .spawn(Self::drain(Slot::new(self, number)));
        }
        Ok(Asked {
            ticket,
            answered,
            slot: direct.map(|number| Slot::direct(self, number)),
        })
    }

    /// Sends what waits, call after call, until nothing does. In a direct slot it makes one call.
    async fn drain(mut slot: Slot) {
        let shared = Arc::clone(&slot.shared);
        if slot.is_direct {
            let batch = shared.lock().take_first(now());
            return shared.send(&mut slot, batch).await;
        }
        loop {
            // What arrives while this waits leaves in the same call.
            let _shared_slot = shared.shared_slot().await;
            let batch = shared.lock().take_batch(now());
            if batch.decisions.is_empty() && batch.late.is_empty() {
                // Dropped, the slot looks again: a decision may have arrived since.
                return;
            }
            shared.send(&mut slot, batch).await;
        }
    }

    /// Waits for one of the slots that all partitions share.
    ///
    /// Calls to a silent server hold theirs for a deadline, and others must not wait for them: a partition whose server
    /// has just failed does without, and after a part of the deadline each does.
    async fn shared_slot(&self) -> Option<SemaphorePermit<'_>> {
        if self.lock().breaker.has_failed() {
            return None;
        }
        let Caller {
            shared_slots,
            deadline,
            ..
        } = &self.caller;
        if let Ok(slot) = shared_slots.try_acquire() {
            return Some(slot);
        }
        tokio::time::timeout(*deadline / SHARED_SLOT_SHARE, shared_slots.acquire())
            .await
            .ok()?
            .ok()
    }

    /// Makes one call, and gives each decision its answer.
    async fn send(&self, slot: &mut Slot, batch: Batch) {
        let Batch {
            decisions, late, ..
        } = batch;
        self.refuse(late, NotSent::Overloaded);
        if decisions.is_empty() {
            return;
        }
        slot.call = Some(CallSpan {
            began: now(),
            weight: batch.weight,
            load: batch.load,
        });
        let reply = self
            .caller
            .call(
                slot.number,
                decisions.iter().map(|pending| &pending.question),
            )
            .await;
        slot.call_ended(Some(end_of(&reply)));
        match reply {
            Ok(reply) => {
                let mut reply = Reply::new(bytes_of(&reply));
                for pending in decisions {
                    let outcome = self.caller.read(&mut reply, &pending.question);
                    pending.answer(outcome);
                }
            }
            Err(error) => decisions
                .into_iter()
                .for_each(|pending| pending.answer(Err(error.clone()))),
        }
    }

    fn refuse(&self, decisions: Vec<Pending>, reason: NotSent) {
        decisions
            .into_iter()
            .for_each(|pending| pending.answer(Err(self.caller.not_sent(reason))));
    }

    /// Locks the queue for a decision that arrives. One that finds other servers than those that failed need not wait.
    fn lock_to_admit(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.lock();
        if !queue.breaker.is_closed()
            && let Some(since) = self.caller.target_since()
        {
            queue.breaker.server_changed(since);
        }
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic cannot leave a queue half changed, so a poisoned lock is safe to use.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of a reply. A reply that is no string is as unreadable as an empty one.
fn bytes_of(reply: &Value) -> &[u8] {
    match reply {
        Value::BulkString(bytes) => bytes,
        _ => &[],
    }
}
