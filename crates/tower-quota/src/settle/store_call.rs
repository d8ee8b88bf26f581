use core::error::Error;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::observe::StoreFailureKind;

#[derive(Debug)]
pub(crate) enum StoreCallError<E> {
    Store(E),
    TimedOut(StoreTimeout),
}

/// The store exceeded the [timeout](crate::RateLimitLayer::store_timeout) of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimeout(Duration);

/// Bounds a call by the timeout. Without a tokio runtime, the call has no timeout.
pub(crate) async fn within<T, E>(
    timeout: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreCallError<E>> {
    let (mut call, mut deadline) = (pin!(call), pin!(None::<Sleep>));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = call.as_mut().poll(cx) {
            return Poll::Ready(answer.map_err(StoreCallError::Store));
        }
        if deadline.is_none() && Handle::try_current().is_ok() {
            #[expect(clippy::disallowed_methods, reason = "the store has a deadline")]
            deadline.set(Some(tokio::time::sleep(timeout)));
        }
        match deadline.as_mut().as_pin_mut() {
            Some(deadline) => deadline
                .poll(cx)
                .map(|()| Err(StoreCallError::TimedOut(StoreTimeout(timeout)))),
            None => Poll::Pending,
        }
    })
    .await
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
