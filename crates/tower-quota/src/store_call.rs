use core::error::Error;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::metrics::StoreFailureKind;

#[derive(Debug)]
pub(crate) enum StoreCallError<E> {
    Store(E),
    TimedOut(StoreTimeout),
}

/// The store exceeded the [timeout](crate::RateLimitLayer::store_timeout) of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimeout(Duration);

pin_project! {
    /// Starts the timer at the first poll, inside of a runtime.
    pub(crate) struct Deadline {
        after: Duration,
        #[pin]
        sleep: Option<Sleep>,
    }
}

/// Without a tokio runtime, the call has no timeout.
pub(crate) async fn within<T, E>(
    timeout: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreCallError<E>> {
    let (mut call, mut deadline) = (pin!(call), pin!(Deadline::new(timeout)));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = call.as_mut().poll(cx) {
            return Poll::Ready(answer.map_err(StoreCallError::Store));
        }
        deadline
            .as_mut()
            .poll_timeout(cx)
            .map(|timeout| Err(StoreCallError::TimedOut(timeout)))
    })
    .await
}

impl Deadline {
    pub(crate) const fn new(after: Duration) -> Self {
        Self { after, sleep: None }
    }

    pub(crate) fn poll_timeout(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StoreTimeout> {
        let timeout = StoreTimeout(self.after);
        if Handle::try_current().is_err() {
            return Poll::Pending;
        }
        self.poll(cx).map(|()| timeout)
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if this.sleep.is_none() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a turn and a deadline are waited for"
            )]
            this.sleep.set(Some(tokio::time::sleep(*this.after)));
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<E: Error + Send + Sync + 'static> StoreCallError<E> {
    pub(crate) const fn kind(&self) -> StoreFailureKind {
        match self {
            Self::Store(_) => StoreFailureKind::Store,
            Self::TimedOut(_) => StoreFailureKind::Timeout,
        }
    }

    pub(crate) fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        match self {
            Self::Store(error) => error,
            Self::TimedOut(error) => error,
        }
    }
}

impl Error for StoreTimeout {}

impl fmt::Display for StoreTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store has not answered within {:?}", self.0)
    }
}
