//! A call whose answer several requests wait for.

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};

use super::view::Tag;
use crate::sync::{Mutex, locked};

type BoxCall = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A call that each request waiting for it carries on, so that none depends on another one's task.
///
/// Its output says whether the store has answered.
pub(super) type SharedCall = Shared<BoxCall>;

/// A call that ends when no request waits for it any more.
pub(super) type WeakCall = WeakShared<BoxCall>;

/// The call that answers a request.
pub(super) enum Role {
    /// The request makes its own call.
    Alone,
    /// The request makes its own call, for which other requests of this limit can wait.
    Leads(Tag),
    /// The request waits for another one's call, which probably takes what the limit has left. If not, it makes its own.
    Follows(SharedCall),
}

/// Returns a call that other requests can wait for, and its answer, which is for one of them.
///
/// If the call panics, that one does too, and no other.
pub(super) fn share<T, E>(
    call: impl Future<Output = Result<T, E>> + Send + 'static,
) -> (SharedCall, impl Future<Output = Result<T, E>> + Send)
where
    T: Send + 'static,
    E: Send + 'static,
{
    let answered = Arc::new(Mutex::default());
    let answer = Arc::clone(&answered);
    let call: BoxCall = Box::pin(async move {
        let answer = AssertUnwindSafe(call).catch_unwind().await;
        let is_answered = matches!(answer, Ok(Ok(_)));
        *locked(&answered) = Some(answer);
        is_answered
    });
    let call = call.shared();
    let own = call.clone();
    (call, async move {
        own.await;
        let answer = locked(&answer).take();
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // Only this request takes it.
            None => core::future::pending().await,
        }
    })
}
