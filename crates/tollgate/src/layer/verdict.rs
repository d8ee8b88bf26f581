//! What happens to a request, and why.

use core::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tollgate_core::{Decision, Operation, Outcome, Standing};

use super::turn::Turn;
use crate::answer::Particulars;
use crate::settle::{Account, Counted, Reservation};

/// What happens to a request.
pub(super) enum Verdict {
    /// It goes ahead; the reservation has to be dropped when it is over.
    Pass(Grounds, Reservation),
    /// It goes ahead after its wait, with its turn.
    Wait(Duration, Ruling, Turn),
    /// This is its answer.
    Refuse(Response<Bytes>),
}

/// What a verdict rests on.
#[expect(clippy::large_enum_variant, reason = "nearly every request has a ruling, and is spared a box")]
pub(super) enum Grounds {
    /// A decision.
    Ruling(Ruling),
    /// None: no limit counts while the store is sick.
    Nothing {
        /// Whether all limits that apply are shadows.
        only_shadows: bool,
    },
}

/// A decision, and what its answer is told besides.
pub(super) struct Ruling {
    pub(super) decision: Decision,
    pub(super) particulars: Particulars,
    /// By whom: the store, or this instance in its place.
    pub(super) by: Counted,
}

impl Ruling {
    /// Whether this instance decided by itself.
    pub(super) fn is_local(&self) -> bool {
        self.by == Counted::Locally
    }

    /// Leaves with a request what it takes to settle its charges.
    pub(super) fn reserve<B>(&mut self, account: Option<Account>, request: &mut Request<B>) -> Reservation {
        let reservation = Reservation::open(account, request);
        if !self.is_local() && !reservation.is_empty() {
            // Whoever finds the decision in the response must not give back what is settled already.
            let _ = self.decision.refund();
        }
        reservation
    }

    /// The same about somebody who may not wait: the limits refuse for as long as they would have made him wait. What is
    /// left is told as if he had waited: never too much.
    pub(super) fn without_waiting(self) -> Self {
        let standings = self.decision.standings().iter().map(|standing| {
            let outcome = match standing.outcome {
                Outcome::Wait(wait) => Outcome::Refuse(wait),
                outcome => outcome,
            };
            Standing { outcome, taken: 0, ..*standing }
        });
        let decision = Decision::from_standings(Operation::Check, self.decision.at(), standings);
        Self { decision, ..self }
    }
}
