//! A decision that waits to be sent.

use tokio::sync::oneshot;
use tollgate_core::Decision;

use crate::error::RedisStoreError;
use crate::question::Question;

pub(super) struct Pending {
    pub(super) question: Question,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
}

impl Pending {
    /// Whether nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}
