//! A bucket of the table: a few entries, and the calls under way about limits whose tags lead here.

use super::entry::KnownLimit;
use super::known_limits::KnownLimits;
use super::shared_call::{Role, WeakCall};
use super::uncounted::Uncounted;
use super::view::{ChargeView, Tag};
use crate::outcome::Outcome;
use crate::sync::{Mutex, locked};

/// The time within which other requests join a call, in microseconds. If its answer is lost, the next request asks.
const LONGEST_FOLLOWED: u64 = 20_000;

/// A bucket of the table. The entries are changed under the lock of the calls under way.
#[derive(Default)]
pub(super) struct RefusalBucket {
    flights: Mutex<Vec<Flight>>,
    entries: KnownLimits,
}

/// The calls under way about one limit of one key.
///
/// It exists only while there are some. A refusal is recorded only if its call has seen no other generation.
struct Flight {
    tag: Tag,
    calls: u32,
    /// Grows with each refund, reset and charge, and with each other quota.
    generation: u32,
    /// The quota that was asked last.
    fingerprint: u64,
    /// The last call that other requests can wait for, and when it was sent.
    shared: Option<(WeakCall, u64)>,
}

/// The part of a store's answer that is about one limit.
#[derive(Clone, Copy)]
pub(super) struct LimitAnswer {
    pub(super) limit: KnownLimit,
    /// Its verdict on the charge.
    pub(super) outcome: Outcome,
    /// Says whether its status is kept where nothing is refused.
    pub(super) is_kept: bool,
}

/// The change of a bucket by a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) is_refusal: bool,
    pub(super) evicts_refusal: bool,
}

impl RefusalBucket {
    /// Returns what is known of a limit. Waits only for a thread that is changing it.
    #[inline]
    pub(super) fn entry(&self, tag: Tag) -> Option<KnownLimit> {
        self.entries
            .find(tag)
            .unwrap_or_else(|_| self.entry_after_change(tag))
    }

    #[cold]
    fn entry_after_change(&self, tag: Tag) -> Option<KnownLimit> {
        let _flights = locked(&self.flights);
        self.entries.get(tag)
    }

    /// Notes a refused request that the store has yet to count. Only a refusal by the limit itself gives a strike.
    pub(super) fn add_uncounted(&self, view: &ChargeView, now: u64, max_age: u64) {
        let _flights = locked(&self.flights);
        if let Some(mut known) = self.entries.get(view.tag) {
            known.uncounted.add(view, known.refuses(view, now, max_age));
            self.entries.put(&known, now);
        }
    }

    /// Returns the call that answers a request of a limit in which so many requests fit.
    pub(super) fn role(&self, view: &ChargeView, fitting: u64, now: u64) -> Role {
        let flights = locked(&self.flights);
        let flight = flights
            .iter()
            .find(|flight| flight.tag == view.tag && flight.fingerprint == view.fingerprint);
        let calls = flight.map_or(0, |flight| u64::from(flight.calls));
        let shared = flight
            .filter(|_| calls >= fitting)
            .and_then(|flight| flight.shared.as_ref());
        let young = shared.filter(|(_, sent)| now.saturating_sub(*sent) < LONGEST_FOLLOWED);
        // Under the lock a call may be taken but not dropped: its end takes the lock too.
        match young.and_then(|(call, _)| call.upgrade()) {
            Some(call) => Role::Follows(call),
            None if calls + 1 >= fitting => Role::Leads(view.tag),
            None => Role::Alone,
        }
    }

    /// Lets other requests of a limit wait for a call that was just sent.
    pub(super) fn share(&self, tag: Tag, call: Option<WeakCall>, now: u64) {
        if let Some(flight) = locked(&self.flights)
            .iter_mut()
            .find(|flight| flight.tag == tag)
        {
            flight.shared = call.map(|call| (call, now));
        }
    }

    /// Notes a call before it is sent. `changes` says whether it may give units back.
    ///
    /// Returns its generation, and the refusals that it can carry to the store.
    pub(super) fn begin(&self, view: &ChargeView, changes: bool, now: u64) -> (u32, Uncounted) {
        let mut flights = locked(&self.flights);
        self.forget_if_other(view, changes);
        let uncounted = self
            .entries
            .get(view.tag)
            .map_or_else(Uncounted::default, |mut known| {
                let uncounted = core::mem::take(&mut known.uncounted);
                known.called = now;
                self.entries.put(&known, now);
                uncounted
            });
        let Some(flight) = flights.iter_mut().find(|flight| flight.tag == view.tag) else {
            let &ChargeView {
                tag, fingerprint, ..
            } = view;
            flights.push(Flight {
                tag,
                calls: 1,
                generation: 0,
                fingerprint,
                shared: None,
            });
            return (0, uncounted);
        };
        flight.calls += 1;
        if changes || flight.fingerprint != view.fingerprint {
            flight.generation = flight.generation.wrapping_add(1);
            flight.fingerprint = view.fingerprint;
        }
        (flight.generation, uncounted)
    }

    /// Notes the end of a call. If its answer still holds, records what it says of a limit, if that is given.
    pub(super) fn end(
        &self,
        view: &ChargeView,
        changes: bool,
        generation: u32,
        answer: Option<LimitAnswer>,
        now: u64,
    ) -> Recorded {
        let mut flights = locked(&self.flights);
        let position = flights.iter().position(|flight| flight.tag == view.tag);
        let Some(position) = position else {
            return Recorded::default();
        };
        let flight = &mut flights[position];
        let is_current = flight.generation == generation;
        // The store may have done it last, whatever was sent after it.
        let interferes = changes || flight.fingerprint != view.fingerprint;
        flight.generation = flight.generation.wrapping_add(u32::from(interferes));
        flight.calls -= 1;
        if flight.calls == 0 {
            flights.swap_remove(position);
        }
        if interferes {
            self.forget_if_other(view, changes);
        }
        match answer {
            Some(answer) if is_current && !interferes => self.record(answer, view, now),
            _ => Recorded::default(),
        }
    }

    /// Forgets what is known by another quota, or in any case if units are given back.
    fn forget_if_other(&self, view: &ChargeView, changes: bool) {
        if self
            .entries
            .get(view.tag)
            .is_some_and(|known| changes || known.fingerprint != view.fingerprint)
        {
            self.entries.remove(view.tag);
        }
    }

    /// Records an answer: a refusal, or a status if those are remembered.
    fn record(&self, answer: LimitAnswer, view: &ChargeView, now: u64) -> Recorded {
        let LimitAnswer {
            limit: mut fresh,
            outcome,
            is_kept,
        } = answer;
        let is_refusal = fresh.is_refusal_at(now);
        if let Some(mut known) = self.entries.get(fresh.tag) {
            if known.sent > fresh.sent {
                return Recorded::default();
            }
            // A refusal stays if the store has not contradicted it.
            let could_contradict = match outcome {
                Outcome::Allow => true,
                Outcome::Never => false,
                _ => !is_refusal,
            };
            let is_contradicted = could_contradict && known.refuses(view, now, u64::MAX);
            let says_more = !is_refusal || known.refuses_more_than(&fresh);
            let stays = known.is_refusal_at(now) && !is_contradicted && says_more;
            if stays {
                known.update_status(&fresh);
                self.entries.put(&known, now);
                return Recorded::default();
            }
            fresh.called = fresh.called.max(known.called);
            fresh.uncounted = known.uncounted;
            if !is_refusal && !is_kept {
                self.entries.remove(fresh.tag);
            }
        }
        let evicted = if is_refusal || is_kept {
            self.entries.put(&fresh, now)
        } else {
            None
        };
        Recorded {
            is_refusal,
            evicts_refusal: evicted.is_some_and(|known| known.is_refusal_at(now)),
        }
    }
}
