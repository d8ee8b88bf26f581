//! The handle by which a handler says what its request costs.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::response::Parts;
use http::{Method, Request};
use smallvec::SmallVec;

use super::charge_record::{ChargeRecord, RecordedCharge};
use super::{ResponseEnd, Settle};

/// What a request was charged by the limits that [settle](crate::Limit::settle), and the right to correct it.
///
/// It is in the extensions of a request that was charged by such a limit, and with the feature `axum` it is an extractor:
/// an empty one where there is none, so that a handler need not know whether it was counted.
///
/// Clones are one reservation. The last word counts, before any rule of the limit; it is [carried out] when the last clone
/// is dropped. Within nested layers a reservation covers the outer ones too.
///
/// ```
/// use http::{Request, Response};
/// use tower_quota::settle::Reservation;
///
/// async fn handler(request: Request<()>) -> Response<()> {
///     if let Some(reservation) = request.extensions().get::<Reservation>() {
///         reservation.settle("tokens", 1_234);
///     }
///     Response::new(())
/// }
/// ```
///
/// [carried out]: super#when
#[derive(Clone, Default)]
#[must_use = "dropped, it can say nothing more"]
pub struct Reservation(Option<Arc<Shared>>);

struct Shared {
    record: ChargeRecord,
    /// What has been said of each charge in the record.
    words: Mutex<SmallVec<[Words; 2]>>,
    /// The reservation of a layer around this one.
    outer: Reservation,
    /// Says whether no body is due, whatever the response's head says.
    is_head: bool,
}

#[derive(Clone, Copy, Default)]
struct Words {
    handler: Option<Settle>,
    rule: Option<Settle>,
}

impl Reservation {
    /// Sets what the request costs by this limit, instead of the estimate; 0 gives all of it back.
    ///
    /// Returns whether the limit is a part of this reservation: it is not where it does not apply or does not settle, where
    /// the store was unavailable and nothing was counted, or where it is a [shadow](crate::Limit::shadow) that would have
    /// refused. In nested layers that have limits of the same name, it is the cost by each of them.
    pub fn settle(&self, limit: &str, cost: u64) -> bool {
        let Some(shared) = &self.0 else { return false };
        let is_mine = shared.say(Settle::Cost(cost), |recorded| recorded.name().as_str() == limit);
        shared.outer.settle(limit, cost) || is_mine
    }

    /// Makes the request free, by every limit that settles.
    pub fn refund(&self) {
        self.say_of_all(Settle::Refund);
    }

    /// Keeps the estimate, by every limit, whatever the rules say.
    pub fn keep(&self) {
        self.say_of_all(Settle::Keep);
    }

    /// Returns the units that this limit charged up front; `None` when it is not a part of this reservation.
    ///
    /// Of nested layers with limits of the same name, it is that of the innermost.
    #[must_use]
    pub fn estimate(&self, limit: &str) -> Option<u64> {
        let shared = self.0.as_ref()?;
        let mine = shared.record.charges().iter().find(|recorded| recorded.name().as_str() == limit);
        mine.map(RecordedCharge::taken).or_else(|| shared.outer.estimate(limit))
    }

    /// Returns whether there is nothing to settle.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Makes a reservation and leaves a clone with the request, if any of its limits settles.
    pub(crate) fn open<B>(record: ChargeRecord, request: &mut Request<B>) -> Self {
        let Some(record) = record.settling() else { return Self::default() };
        let words = Mutex::new(record.charges().iter().map(|_| Words::default()).collect());
        let outer = request.extensions_mut().remove().unwrap_or_default();
        let is_head = request.method() == Method::HEAD;
        let reservation = Self(Some(Arc::new(Shared { record, words, outer, is_head })));
        request.extensions_mut().insert(reservation.clone());
        reservation
    }

    /// Returns whether the response cannot have a body.
    pub(crate) fn is_head(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.is_head)
    }

    /// Asks the rules about the head of the response. Returns whether all of them have answered.
    pub(crate) fn head(&self, response: &Parts) -> bool {
        self.rule(|recorded| recorded.rule().and_then(|settle| settle.rule.at_head(response)))
    }

    /// Returns how many bytes of the body may be sent, if a rule says so.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        let most = |recorded: &RecordedCharge| recorded.rule()?.rule.most_bytes(recorded.available());
        self.0.as_ref()?.record.charges().iter().filter_map(most).min()
    }

    /// Asks the rules that did not answer at the head.
    pub(crate) fn end(&self, end: &ResponseEnd<'_>) {
        self.rule(|recorded| recorded.rule().map(|settle| settle.rule.at_end(end)));
    }

    /// Asks the rules that have not answered. No lock is held meanwhile: a rule may find a reservation in the response.
    fn rule(&self, ask: impl Fn(&RecordedCharge) -> Option<Settle>) -> bool {
        let Some(shared) = &self.0 else { return true };
        let mut have_all = true;
        for (position, recorded) in shared.record.charges().iter().enumerate() {
            if shared.words()[position].rule.is_none() {
                let verdict = ask(recorded);
                shared.words()[position].rule = verdict;
                have_all &= verdict.is_some();
            }
        }
        have_all
    }

    fn say_of_all(&self, word: Settle) {
        if let Some(shared) = &self.0 {
            shared.say(word, |_| true);
            shared.outer.say_of_all(word);
        }
    }
}

impl Shared {
    /// Says it of these charges. Returns whether there are any.
    fn say(&self, word: Settle, of: impl Fn(&RecordedCharge) -> bool) -> bool {
        let mut is_said = false;
        for (recorded, words) in self.record.charges().iter().zip(self.words().iter_mut()) {
            if of(recorded) {
                words.handler = Some(word);
                is_said = true;
            }
        }
        is_said
    }

    fn words(&self) -> MutexGuard<'_, SmallVec<[Words; 2]>> {
        // A word is written in one step.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    /// Settles: no handle is left that could say anything.
    fn drop(&mut self) {
        let words = self.words.get_mut().unwrap_or_else(PoisonError::into_inner);
        let verdicts = self.record.charges().iter().zip(words.iter()).map(|(recorded, said)| {
            let abandoned = || recorded.rule().map(|settle| settle.abandoned).unwrap_or_default();
            said.handler.or(said.rule).unwrap_or_else(abandoned)
        });
        self.record.settle(verdicts);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charges = self.0.as_ref().map_or(&[][..], |shared| shared.record.charges());
        f.debug_map().entries(charges.iter().map(|recorded| (recorded.name(), recorded.taken()))).finish()
    }
}
