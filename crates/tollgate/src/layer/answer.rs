//! Asking the store about a request.

use core::any::Any;
use core::future::{Future, Ready};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use http::Request;
use tollgate_core::{Decision, Store};

use super::gate::Gate;
use super::verdict::Case;
use crate::head::RequestHead;
use crate::plan::Unasked;

/// What a store answers.
pub(super) type Answer<S> = Result<Decision, <S as Store>::Error>;

impl<S: Store> Gate<S> {
    /// Asks the store about a request.
    #[inline]
    pub(super) fn ask<B>(&self, request: &Request<B>, case: &mut Case) -> Result<S::Future, Unasked> {
        self.plan.ask(&RequestHead::of(request), &mut case.particulars.overrides, |charges| {
            case.ledger = self.plan.ledger(charges);
            self.store.check(charges)
        })
    }
}

/// The answer, where it is there already, as that of a store in this process: a [`Ready`], which is known by its type, so
/// that no future has to be polled before it has its place.
#[inline]
pub(super) fn at_once<F: Future<Output: 'static> + 'static>(answer: &mut F) -> Poll<F::Output> {
    match (answer as &mut dyn Any).downcast_mut::<Ready<F::Output>>() {
        Some(ready) => Pin::new(ready).poll(&mut Context::from_waker(Waker::noop())),
        None => Poll::Pending,
    }
}
