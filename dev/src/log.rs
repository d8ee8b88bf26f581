//! Subscribers of one thread.

use std::sync::LazyLock;

use tracing::Subscriber;
use tracing::dispatcher::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

/// Keeps a second subscriber alive. While there is only one, the thread that first reaches a log line decides for all threads
/// whether the line is recorded, and another test may run on this thread without a subscriber.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// Passes the log lines and spans of this thread to the subscriber, until you drop the guard.
#[must_use]
pub fn record_log(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&SECOND);
    set_default(subscriber)
}
