//! A decision that waits to be sent.

use tokio::sync::oneshot;
use tokio::time::Instant;
use tower_quota_core::Decision;

use crate::error::RedisStoreError;
use crate::question::Question;

pub(super) struct Pending {
    pub(super) question: Question,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
    /// When its caller gives up. `None` for a deadline so far off that no instant can say it.
    pub(super) expiry: Option<Instant>,
}

impl Pending {
    /// Whether nobody waits for the answer any more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.answer.is_closed() || self.expiry.is_some_and(|expiry| expiry <= now)
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a caller waits is a matter of this machine's time")]
pub(super) fn now() -> Instant {
    Instant::now()
}
