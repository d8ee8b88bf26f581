//! Asking the store about a request.

use core::any::Any;
use core::future::{Future, Ready};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use http::Request;
use tower_quota_core::{Charge, Decision, Name, Outcome, Quota, Store};

use super::gate::Gate;
use super::verdict::Case;
use crate::head::RequestHead;
use crate::plan::Unasked;

/// What a store answers.
pub(super) type Answer<S> = Result<Decision, <S as Store>::Error>;

/// What has come of asking the store about a request. What is large is told apart, where it stays.
pub(super) enum Asked {
    /// It goes ahead, and nobody wants to know.
    Pass,
    /// There is more to it.
    Further,
}

/// What more there is to a request.
#[expect(clippy::large_enum_variant, reason = "it is made where it stays")]
pub(super) enum Further<S: Store> {
    /// Nothing.
    Nothing,
    /// The answer is there, and has to be looked at.
    Answered(Answer<S>, Case),
    /// The answer is to come.
    Pending(S::Future, Case),
}

impl<S: Store> Gate<S> {
    /// Asks the store about a request. An answer that is there at once is looked at where it stands, since it is large.
    #[inline]
    pub(super) fn ask<B>(&self, request: &Request<B>, further: &mut Further<S>) -> Result<Asked, Unasked> {
        let head = RequestHead::of(request);
        self.plan.ask(&head, |charges, overrides| {
            let mut decision = Decision::default();
            let is_decided = self.store.check_at_once(charges, &mut decision);
            if is_decided && self.is_plain && decision.outcome() == Outcome::Allow {
                self.local.answered();
                return Asked::Pass;
            }
            *further = self.further(is_decided.then_some(decision), charges, overrides);
            Asked::Further
        })
    }

    /// What there is to do about a request whose charges are these.
    #[inline(never)]
    fn further(&self, decided: Option<Decision>, charges: &[Charge<'_>], overrides: &[(Name, Quota)]) -> Further<S> {
        let case = Case::new(overrides, self.plan.ledger(charges));
        if let Some(decision) = decided {
            return Further::Answered(Ok(decision), case);
        }
        let mut answer = self.store.check(charges);
        match at_once(&mut answer) {
            Poll::Ready(answer) => Further::Answered(answer, case),
            Poll::Pending => Further::Pending(answer, case),
        }
    }
}

/// The answer, where it is there already: a [`Ready`], which is known by its type, so that no future has to be polled
/// before it has its place.
#[inline]
fn at_once<F: Future<Output: 'static> + 'static>(answer: &mut F) -> Poll<F::Output> {
    match (answer as &mut dyn Any).downcast_mut::<Ready<F::Output>>() {
        Some(ready) => Pin::new(ready).poll(&mut Context::from_waker(Waker::noop())),
        None => Poll::Pending,
    }
}
