//! The future of a wrapped store.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_util::future::Either;
use pin_project_lite::pin_project;

use crate::decision::Decision;
use crate::store::Store;

pin_project! {
    /// The future of a [`RefusalCache`](crate::RefusalCache).
    ///
    /// An answer of a store that is not shared is passed on; every other one is boxed.
    #[must_use = "futures do nothing unless polled"]
    pub struct RefusalFuture<S>
    where
        S: Store,
    {
        #[pin]
        source: Either<S::Future, BoxAnswer<S>>,
    }
}

type BoxAnswer<S> = Pin<Box<dyn Future<Output = Result<Decision, <S as Store>::Error>> + Send>>;

impl<S: Store> RefusalFuture<S> {
    /// Passes on the answer of the store.
    pub(super) const fn direct(answer: S::Future) -> Self {
        Self {
            source: Either::Left(answer),
        }
    }

    /// Boxes an answer that the cache takes part in.
    pub(super) fn tracked(
        answer: impl Future<Output = Result<Decision, S::Error>> + Send + 'static,
    ) -> Self {
        Self {
            source: Either::Right(Box::pin(answer)),
        }
    }
}

impl<S: Store> Future for RefusalFuture<S> {
    type Output = Result<Decision, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().source.poll(cx)
    }
}

impl<S: Store> fmt::Debug for RefusalFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefusalFuture")
    }
}
