//! A call whose answer several requests wait for.

use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};

use super::view::Tag;
use crate::sync::ShortMutex;

/// A call that each request waiting for it carries on, so that none depends on another one's task.
pub(super) type SharedCall = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// A call that ends when no request waits for it any more.
pub(super) type WeakCall = WeakShared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// The call that answers a request.
pub(super) enum Role {
    /// Its own.
    Alone,
    /// Its own, for which other requests of this limit can wait.
    Leads(Tag),
    /// That of another request, which probably takes what the limit has left. If it does not, the request asks itself.
    Follows(SharedCall),
}

/// Returns a call that other requests can wait for, and its answer, which is for one of them.
pub(super) fn share<A: Send + 'static>(
    call: impl Future<Output = A> + Send + 'static,
) -> (SharedCall, impl Future<Output = A> + Send) {
    let answered = Arc::new(ShortMutex::default());
    let answer = Arc::clone(&answered);
    let call: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        let answer = call.await;
        *answered.lock() = Some(answer);
    });
    let call = call.shared();
    let own = call.clone();
    (call, async move {
        own.await;
        let answer = answer.lock().take();
        match answer {
            Some(answer) => answer,
            // Nobody else takes it.
            None => core::future::pending().await,
        }
    })
}
