//! A bucket of the table: a few entries, and the calls under way about limits whose tags lead here.

use super::entry::KnownLimit;
use super::uncounted::Uncounted;
use super::view::{ChargeView, Tag};

/// The entries of a bucket.
pub(super) const WAYS: usize = 8;

/// A bucket of the table.
#[derive(Default)]
pub(super) struct RefusalBucket {
    entries: Vec<KnownLimit>,
    flights: Vec<Flight>,
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
}

/// The change of a bucket by a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) is_refusal: bool,
    pub(super) evicts_refusal: bool,
}

impl RefusalBucket {
    pub(super) fn entry(&self, tag: Tag) -> Option<&KnownLimit> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }

    pub(super) fn entry_mut(&mut self, tag: Tag) -> Option<&mut KnownLimit> {
        self.entries.iter_mut().find(|entry| entry.tag == tag)
    }

    fn remove_if(&mut self, tag: Tag, condition: impl FnOnce(&KnownLimit) -> bool) {
        if let Some(position) = self.entries.iter().position(|entry| entry.tag == tag)
            && condition(&self.entries[position])
        {
            self.entries.swap_remove(position);
        }
    }

    /// Notes a call before it is sent. `changes` says whether it may give units back.
    ///
    /// Returns its generation, and the refusals that it can carry to the store.
    pub(super) fn begin(&mut self, view: &ChargeView, changes: bool, now: u64) -> (u32, Uncounted) {
        self.remove_if(view.tag, |entry| changes || entry.fingerprint != view.fingerprint);
        let uncounted = self.entry_mut(view.tag).map_or_else(Uncounted::default, |entry| {
            entry.called = now;
            core::mem::take(&mut entry.uncounted)
        });
        let Some(flight) = self.flights.iter_mut().find(|flight| flight.tag == view.tag) else {
            self.flights.push(Flight { tag: view.tag, calls: 1, generation: 0, fingerprint: view.fingerprint });
            return (0, uncounted);
        };
        flight.calls += 1;
        if changes || flight.fingerprint != view.fingerprint {
            flight.generation = flight.generation.wrapping_add(1);
            flight.fingerprint = view.fingerprint;
        }
        (flight.generation, uncounted)
    }

    /// Notes the end of a call. Returns whether its answer still holds.
    pub(super) fn end(&mut self, view: &ChargeView, changes: bool, generation: u32) -> bool {
        let Some(position) = self.flights.iter().position(|flight| flight.tag == view.tag) else { return false };
        let flight = &mut self.flights[position];
        let is_current = flight.generation == generation;
        // The store may have done it last, whatever was sent after it.
        let interferes = changes || flight.fingerprint != view.fingerprint;
        flight.generation = flight.generation.wrapping_add(u32::from(interferes));
        flight.calls -= 1;
        if flight.calls == 0 {
            self.flights.swap_remove(position);
        }
        if interferes {
            self.remove_if(view.tag, |entry| changes || entry.fingerprint != view.fingerprint);
        }
        is_current && !interferes
    }

    /// Records an answer: a refusal, or a status if those are remembered.
    pub(super) fn record(
        &mut self,
        mut fresh: KnownLimit,
        view: &ChargeView,
        now: u64,
        keeps_status: bool,
    ) -> Recorded {
        let is_refusal = fresh.is_refusal_at(now);
        let recorded = Recorded { is_refusal, evicts_refusal: false };
        if let Some(known) = self.entry_mut(fresh.tag) {
            if known.sent > fresh.sent {
                return Recorded::default();
            }
            let still_refuses = known.is_refusal_at(now);
            // A refusal stays if the store has not contradicted it.
            let stays = still_refuses
                && if is_refusal { known.refuses_more_than(&fresh) } else { !known.refuses(view, now, u64::MAX) };
            if stays {
                known.update_status(&fresh);
                return Recorded::default();
            }
            fresh.called = fresh.called.max(known.called);
            fresh.uncounted = known.uncounted;
            if is_refusal || keeps_status {
                *known = fresh;
                return recorded;
            }
            self.remove_if(fresh.tag, |_| true);
            return recorded;
        }
        if !is_refusal && !keeps_status {
            return recorded;
        }
        if self.entries.len() < WAYS {
            self.entries.push(fresh);
            return recorded;
        }
        let mut evicts_refusal = false;
        if let Some(oldest) = self.entries.iter_mut().min_by_key(|entry| entry.rank(now)) {
            evicts_refusal = oldest.is_refusal_at(now);
            *oldest = fresh;
        }
        Recorded { is_refusal, evicts_refusal }
    }
}
