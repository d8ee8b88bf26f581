use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::response::Parts;
use http::{Method, Request};
use smallvec::SmallVec;
use tower_quota_core::Name;

use super::charge_record::{ChargeRecord, RecordedCharge};
use super::{ResponseEnd, Settle};

/// A handle to correct the charges of a request, and to prolong holds.
///
/// Your handler finds the reservation in the extensions of a request that a limit [settles](crate::Limit::settle), or
/// through the axum extractor, which may be empty. Nested layers share the reservation.
///
/// Clones share the costs, and the last cost that you set counts. The layer [settles](super#time-of-settling), and
/// releases [held](crate::Quota::concurrent) units, when the response is written and you have dropped the last clone.
/// For an upgraded connection, such as a websocket, keep a clone in the connection's task.
///
/// ```
/// use http::{Request, Response};
/// use tower_quota::settle::Reservation;
///
/// async fn handler(request: Request<()>) -> Response<()> {
///     if let Some(reservation) = request.extensions().get::<Reservation>() {
///         let _ = reservation.settle("tokens", 1_234);
///     }
///     Response::new(())
/// }
/// ```
#[derive(Clone, Default)]
#[must_use = "a dropped reservation can no longer set the cost"]
pub struct Reservation(Option<Arc<Settlement>>);

struct Settlement {
    record: ChargeRecord,
    settled: Mutex<SmallVec<[Settled; 2]>>,
    outer: Reservation,
    method: Method,
}

#[derive(Clone, Copy, Default)]
struct Settled {
    handler: Option<Settle>,
    rule: Option<Settle>,
}

impl Reservation {
    /// Sets the cost of the request for this limit. 0 refunds the whole estimate.
    ///
    /// Returns whether the reservation contains the limit. Limits that do not apply or settle, refusing
    /// [shadows](crate::Limit::shadow), and charges during an outage are missing. Nested layers get the
    /// cost too.
    ///
    /// A name that no limit has is a [mistake](crate::Check::UnknownLimit), and the estimate stays.
    #[must_use = "without the limit, the estimate stays"]
    pub fn settle(&self, limit: &str, cost: u64) -> bool {
        let is_set = self.set_cost(limit, cost);
        if let Some(settlement) = &self.0
            && !is_set
            && !self.knows(limit)
        {
            settlement.record.settler.checks().unknown_limit(limit);
        }
        is_set
    }

    fn set_cost(&self, limit: &str, cost: u64) -> bool {
        let Some(settlement) = &self.0 else {
            return false;
        };
        let is_mine = settlement.set(Settle::Cost(cost), |recorded| {
            recorded.name().as_str() == limit
        });
        settlement.outer.set_cost(limit, cost) || is_mine
    }

    fn knows(&self, limit: &str) -> bool {
        self.0.as_ref().is_some_and(|settlement| {
            settlement.record.settler.has_limit(limit) || settlement.outer.knows(limit)
        })
    }

    /// Sets the cost for every limit that settles, in nested layers too.
    ///
    /// Use `settle_all` if all limits count the same unit, such as tokens.
    pub fn settle_all(&self, cost: u64) {
        self.set_all(Settle::Cost(cost));
    }

    /// Refunds the request for every limit that settles.
    pub fn refund(&self) {
        self.set_all(Settle::Refund);
    }

    /// Keeps the estimate for every limit that settles.
    pub fn keep(&self) {
        self.set_all(Settle::Keep);
    }

    /// Returns the estimate of this limit in units, if the reservation has the limit.
    ///
    /// With nested layers, you get the innermost estimate.
    #[must_use]
    pub fn estimate(&self, limit: &str) -> Option<u64> {
        let settlement = self.0.as_ref()?;
        let mine = settlement
            .record
            .charges
            .iter()
            .find(|recorded| recorded.name().as_str() == limit);
        mine.map(|recorded| recorded.taken)
            .or_else(|| settlement.outer.estimate(limit))
    }

    /// Returns whether the reservation has no charges.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn open<B>(record: ChargeRecord, request: &mut Request<B>) -> Self {
        let Some(record) = record.settling() else {
            return Self::default();
        };
        let settled = Mutex::new(record.charges.iter().map(|_| Settled::default()).collect());
        let outer = request.extensions_mut().remove().unwrap_or_default();
        let method = request.method().clone();
        let reservation = Self(Some(Arc::new(Settlement {
            record,
            settled,
            outer,
            method,
        })));
        request.extensions_mut().insert(reservation.clone());
        reservation
    }

    pub(crate) fn is_of(&self, method: &Method) -> bool {
        let settlement = self.0.as_ref();
        settlement.is_some_and(|settlement| settlement.method == method)
    }

    /// Reports an upgraded connection that keeps no clone of this reservation.
    pub(super) fn check_upgrade(&self) {
        if let Some(settlement) = &self.0
            && let Some(hold) = settlement.hold()
            && Arc::strong_count(settlement) == 1
        {
            settlement.record.settler.checks().unheld_upgrade(hold);
        }
    }

    /// Returns whether the request holds units, also by a charge that the layer took after a wait.
    pub(crate) fn holds(&self) -> bool {
        let settlement = self.0.as_ref();
        settlement.is_some_and(|settlement| settlement.hold().is_some() || settlement.outer.holds())
    }

    /// Applies the rules to the head of the response. Returns whether all rules have decided.
    pub(crate) fn head(&self, response: &Parts) -> bool {
        self.rule(|recorded| {
            recorded
                .rule
                .as_ref()
                .and_then(|settle| settle.rule.at_head(response))
        })
    }

    pub(crate) fn most_bytes(&self) -> Option<u64> {
        let most =
            |recorded: &RecordedCharge| recorded.rule.as_ref()?.rule.most_bytes(recorded.available);
        let charges = self.0.as_ref()?.record.charges.iter();
        charges
            .filter(|recorded| !recorded.is_shadow())
            .filter_map(most)
            .min()
    }

    pub(crate) fn end(&self, end: &ResponseEnd<'_>) {
        self.rule(|recorded| recorded.rule.as_ref().map(|settle| settle.rule.at_end(end)));
    }

    /// Applies undecided rules, without a lock, because a rule may use the reservation.
    fn rule(&self, decide: impl Fn(&RecordedCharge) -> Option<Settle>) -> bool {
        let Some(settlement) = &self.0 else {
            return true;
        };
        let mut have_all = true;
        for (position, recorded) in settlement.record.charges.iter().enumerate() {
            if settlement.settled()[position].rule.is_none() {
                // Unlock before the rule runs, because the rule may use the reservation.
                let settle = decide(recorded);
                settlement.settled()[position].rule = settle;
                have_all &= settle.is_some();
            }
        }
        have_all
    }

    fn set_all(&self, settle: Settle) {
        if let Some(settlement) = &self.0 {
            settlement.set(settle, |_| true);
            // A handler knows only the innermost reservation, so pass the cost on to outer layers.
            settlement.outer.set_all(settle);
        }
    }
}

impl Settlement {
    fn hold(&self) -> Option<Name> {
        let mut charges = self.record.charges.iter();
        charges
            .find(|recorded| recorded.is_hold())
            .map(RecordedCharge::name)
    }

    fn set(&self, settle: Settle, of: impl Fn(&RecordedCharge) -> bool) -> bool {
        let mut is_set = false;
        for (recorded, settled) in self.record.charges.iter().zip(self.settled().iter_mut()) {
            if !recorded.is_hold() && of(recorded) {
                settled.handler = Some(settle);
                is_set = true;
            }
        }
        is_set
    }

    fn settled(&self) -> MutexGuard<'_, SmallVec<[Settled; 2]>> {
        // Each change is a single step, so the list is valid even if a thread panicked.
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        self.record.release_moved();
        let settled = self
            .settled
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let settled = self
            .record
            .charges
            .iter()
            .zip(settled.iter())
            .map(|(recorded, settled)| {
                let abandoned = || {
                    recorded
                        .rule
                        .as_ref()
                        .map(|settle| settle.abandoned)
                        .unwrap_or_default()
                };
                // The handler knows the work, so its cost wins over a rule's.
                settled.handler.or(settled.rule).unwrap_or_else(abandoned)
            });
        // Settle on drop, which panics, hang-ups and detached tasks have in common.
        self.record.settle(settled);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}
