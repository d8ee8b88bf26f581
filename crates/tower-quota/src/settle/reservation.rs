//! The handle by which a handler sets the cost of its request.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::response::Parts;
use http::{Method, Request};
use smallvec::SmallVec;

use super::charge_record::{ChargeRecord, RecordedCharge};
use super::{ResponseEnd, Settle};

/// A handle to correct the charges of a request by limits that [settle](crate::Limit::settle), and to prolong its
/// holds.
///
/// It is in the extensions of a request that such a limit has charged. With the feature `axum` it is also an
/// extractor, which is empty if nothing was charged.
///
/// Clones share one reservation, and the last cost that you set counts. The layer [applies] it when you drop the last
/// clone. In nested layers a reservation includes the outer layers.
///
/// A request holds the units of a [concurrency limit](crate::Quota::concurrent) until its response has ended and you
/// have dropped the last clone. Keep a clone in the task of an upgraded connection, such as a websocket, to hold the
/// units until the connection ends. Without a clone, the upgrade releases the units.
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
/// [applies]: super#time-of-settling
#[derive(Clone, Default)]
#[must_use = "a dropped reservation can no longer set the cost"]
pub struct Reservation(Option<Arc<Settlement>>);

struct Settlement {
    record: ChargeRecord,
    /// The verdicts on each charge in the record.
    verdicts: Mutex<SmallVec<[Verdicts; 2]>>,
    /// The reservation of an outer layer.
    outer: Reservation,
    /// True if the request is `HEAD`, so the response has no body.
    is_head: bool,
}

#[derive(Clone, Copy, Default)]
struct Verdicts {
    handler: Option<Settle>,
    rule: Option<Settle>,
}

impl Reservation {
    /// Sets the cost of the request for this limit, instead of the estimate. 0 refunds all of it.
    ///
    /// Returns whether the limit is a part of this reservation. It is not if it does not apply or does not settle, if
    /// the store was unavailable, or if it is a [shadow](crate::Limit::shadow) that would have refused. The cost is
    /// set for limits of this name in all nested layers, and in a [dry run](crate::Policy::dry_run).
    pub fn settle(&self, limit: &str, cost: u64) -> bool {
        let Some(settlement) = &self.0 else {
            return false;
        };
        let is_mine = settlement.set(Settle::Cost(cost), |recorded| {
            recorded.name().as_str() == limit
        });
        settlement.set(Settle::Cost(cost), |recorded| recorded.is_dry_run_of(limit));
        settlement.outer.settle(limit, cost) || is_mine
    }

    /// Sets the cost of the request for every limit that settles, in nested layers too.
    ///
    /// Use it for limits that count the same units, such as the tokens of a minute and of a day.
    pub fn settle_all(&self, cost: u64) {
        self.set_all(Settle::Cost(cost));
    }

    /// Refunds the request for every limit that settles.
    pub fn refund(&self) {
        self.set_all(Settle::Refund);
    }

    /// Keeps the estimate for every limit that settles, instead of applying its rule.
    pub fn keep(&self) {
        self.set_all(Settle::Keep);
    }

    /// Returns the units that this limit charged up front; `None` if it is not part of the reservation.
    ///
    /// If nested layers have limits of the same name, it is that of the innermost.
    #[must_use]
    pub fn estimate(&self, limit: &str) -> Option<u64> {
        let settlement = self.0.as_ref()?;
        let mine = settlement
            .record
            .charges()
            .iter()
            .find(|recorded| recorded.name().as_str() == limit);
        mine.map(RecordedCharge::taken)
            .or_else(|| settlement.outer.estimate(limit))
    }

    /// Returns whether there is nothing to settle.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Makes a reservation, and attaches a clone to the request if any of its limits settles.
    pub(crate) fn open<B>(record: ChargeRecord, request: &mut Request<B>) -> Self {
        let Some(record) = record.settling() else {
            return Self::default();
        };
        let verdicts = Mutex::new(
            record
                .charges()
                .iter()
                .map(|_| Verdicts::default())
                .collect(),
        );
        let outer = request.extensions_mut().remove().unwrap_or_default();
        let is_head = request.method() == Method::HEAD;
        let reservation = Self(Some(Arc::new(Settlement {
            record,
            verdicts,
            outer,
            is_head,
        })));
        request.extensions_mut().insert(reservation.clone());
        reservation
    }

    pub(crate) fn is_head(&self) -> bool {
        self.0.as_ref().is_some_and(|settlement| settlement.is_head)
    }

    /// Applies the rules to the head of the response. Returns whether all of them have decided.
    pub(crate) fn head(&self, response: &Parts) -> bool {
        self.rule(|recorded| {
            recorded
                .rule()
                .and_then(|settle| settle.rule.at_head(response))
        })
    }

    /// Returns the maximum number of bytes of the body, if the rule of an enforced limit sets one.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        let most =
            |recorded: &RecordedCharge| recorded.rule()?.rule.most_bytes(recorded.available());
        let charges = self.0.as_ref()?.record.charges().iter();
        charges
            .filter(|recorded| !recorded.is_shadow())
            .filter_map(most)
            .min()
    }

    pub(crate) fn end(&self, end: &ResponseEnd<'_>) {
        self.rule(|recorded| recorded.rule().map(|settle| settle.rule.at_end(end)));
    }

    /// Applies the rules that have not decided. Returns whether all of them have.
    ///
    /// No lock is held in the meantime, because a rule may use a reservation in the response.
    fn rule(&self, ask: impl Fn(&RecordedCharge) -> Option<Settle>) -> bool {
        let Some(settlement) = &self.0 else {
            return true;
        };
        let mut have_all = true;
        for (position, recorded) in settlement.record.charges().iter().enumerate() {
            if settlement.verdicts()[position].rule.is_none() {
                let verdict = ask(recorded);
                settlement.verdicts()[position].rule = verdict;
                have_all &= verdict.is_some();
            }
        }
        have_all
    }

    fn set_all(&self, verdict: Settle) {
        if let Some(settlement) = &self.0 {
            settlement.set(verdict, |_| true);
            settlement.outer.set_all(verdict);
        }
    }
}

impl Settlement {
    /// Sets the handler's verdict on these charges. Returns whether there are any.
    fn set(&self, verdict: Settle, of: impl Fn(&RecordedCharge) -> bool) -> bool {
        let mut is_set = false;
        for (recorded, verdicts) in self.record.charges().iter().zip(self.verdicts().iter_mut()) {
            if !recorded.is_hold() && of(recorded) {
                verdicts.handler = Some(verdict);
                is_set = true;
            }
        }
        is_set
    }

    fn verdicts(&self) -> MutexGuard<'_, SmallVec<[Verdicts; 2]>> {
        // A verdict is written in one step, so a poisoned list is still valid.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Settlement {
    /// Settles, because no handle is left that could set a cost.
    fn drop(&mut self) {
        let verdicts = self
            .verdicts
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let verdicts =
            self.record
                .charges()
                .iter()
                .zip(verdicts.iter())
                .map(|(recorded, verdict)| {
                    let abandoned = || {
                        recorded
                            .rule()
                            .map(|settle| settle.abandoned)
                            .unwrap_or_default()
                    };
                    verdict.handler.or(verdict.rule).unwrap_or_else(abandoned)
                });
        self.record.settle(verdicts);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charges = self
            .0
            .as_ref()
            .map_or(&[][..], |settlement| settlement.record.charges());
        f.debug_map()
            .entries(
                charges
                    .iter()
                    .map(|recorded| (recorded.name(), recorded.taken())),
            )
            .finish()
    }
}
