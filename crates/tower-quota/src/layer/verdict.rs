//! What happens to a request, and why.

use core::time::Duration;

use http::{Request, Response};
use tower_quota_core::{Decision, LimitStatus, Name, Operation, Outcome, Quota};

use super::turn::Turn;
use crate::response::{RefusalBody, Report};
use crate::settle::{Account, Counted, Ledger, Reservation};

/// What happens to a request.
pub(super) enum Verdict {
    /// It goes ahead; the reservation has to be dropped when it is over.
    Pass(Reservation),
    /// It goes ahead after its wait, with its turn.
    Wait(Duration, Turn),
    /// This is its answer.
    Refuse(Response<RefusalBody>),
}

/// What is known of a request beside the decision. The decision is large, and stays where the store has put it.
pub(super) struct Case {
    /// What its response reports, without the decision until then.
    pub(super) report: Report,
    /// What has to be kept of the charges, until it is known what happens to the request.
    pub(super) ledger: Option<Ledger>,
}

impl Case {
    /// One that the store decides, by quotas of the request's own where it has any.
    pub(super) fn new(overrides: &[(Name, Quota)], ledger: Option<Ledger>) -> Self {
        Self { report: Report { overrides: overrides.to_vec(), ..Report::new(None) }, ledger }
    }

    /// Whether this instance decided by itself.
    #[inline]
    pub(super) fn is_local(&self) -> bool {
        self.report.by == Counted::Locally
    }

    /// Leaves with a request what it takes to settle its charges.
    #[inline]
    pub(super) fn reserve<B>(
        &self,
        decision: &mut Decision,
        account: Option<Account>,
        request: &mut Request<B>,
    ) -> Reservation {
        let Some(account) = account else { return Reservation::default() };
        let reservation = Reservation::open(account, request);
        if !self.is_local() && !reservation.is_empty() {
            // Whoever finds the decision in the response must not give back what is settled already.
            let _ = decision.refund();
        }
        reservation
    }
}

/// The same about somebody who may not wait: the limits refuse for as long as they would have made him wait. What is left
/// is told as if he had waited: never too much.
pub(super) fn without_waiting(decision: &Decision) -> Decision {
    let standings = decision.statuses().iter().map(|standing| {
        let outcome = match standing.outcome {
            Outcome::Wait(wait) => Outcome::Refuse(wait),
            outcome => outcome,
        };
        LimitStatus { outcome, taken: 0, ..*standing }
    });
    Decision::from_statuses(Operation::Check, decision.at(), standings)
}
