//! The store's answer to come, and what is due to a request that goes away before it has come.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tower_quota_core::{Decision, Store};

use super::gate::Gate;
use super::till::detach;
use crate::settle::{Account, Counted, Ledger};

pin_project! {
    /// An answer to come, and with it what has to be kept of the charges.
    #[project = PendingProjection]
    pub(super) enum Pending<S: Store> {
        Plain {
            #[pin]
            answer: S::Future,
        },
        Watched {
            watched: Watched<S>,
        },
    }
}

/// An answer that is waited for even if the request goes away: what it says was taken, of charges that are kept, is then
/// given back. Boxed, to be moved to whoever goes on waiting.
pub(super) struct Watched<S: Store> {
    gate: Arc<Gate<S>>,
    runtime: Option<Handle>,
    /// Empty once it has come.
    kept: Option<(Pin<Box<S::Future>>, Ledger)>,
}

impl<S: Store> Pending<S> {
    pub(super) fn new(gate: &Arc<Gate<S>>, answer: S::Future, ledger: Option<Ledger>) -> Self {
        let Some(ledger) = ledger else { return Self::Plain { answer } };
        let (gate, runtime) = (Arc::clone(gate), Handle::try_current().ok());
        Self::Watched { watched: Watched { gate, runtime, kept: Some((Box::pin(answer), ledger)) } }
    }
}

impl<S: Store> Future for Pending<S> {
    type Output = (Result<Decision, S::Error>, Option<Ledger>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            PendingProjection::Plain { answer } => answer.poll(cx).map(|answer| (answer, None)),
            PendingProjection::Watched { watched } => match &mut watched.kept {
                Some((answer, _)) => {
                    let answer = ready!(answer.as_mut().poll(cx));
                    Poll::Ready((answer, watched.kept.take().map(|(_, ledger)| ledger)))
                }
                None => Poll::Pending,
            },
        }
    }
}

impl<S: Store> Drop for Watched<S> {
    fn drop(&mut self) {
        let Some((answer, ledger)) = self.kept.take() else { return };
        let gate = Arc::clone(&self.gate);
        let give_back = async move {
            match answer.await {
                Ok(decision) if decision.is_allowed() => {
                    Account::new(gate, Counted::Shared, &decision, ledger).give_back();
                }
                Ok(_) => {}
                Err(error) => (gate.on_store_error)(&error),
            }
        };
        detach(give_back, self.runtime.as_ref());
    }
}
