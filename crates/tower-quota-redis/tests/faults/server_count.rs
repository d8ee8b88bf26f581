//! Compares the result of a trial with what the server has counted.

use std::time::Duration;

use tower_quota_core::{Charge, Store};
use tower_quota_redis::RedisStore;

use crate::load::{COUNTED, key};
use crate::rig::until_answered;

/// The exactness of the server's count at the end of a trial.
#[derive(Clone, Copy)]
pub(crate) enum CountCheck {
    /// The server counted each admitted request once, and perhaps the failed requests that may have
    /// been counted.
    Exact,
    /// The same as `Exact`, but counts may be missing, because the server came back empty, or its
    /// replica lacked the last writes.
    MayLack,
    /// The server is gone, so the check is skipped.
    Skipped,
}

/// The figures of a trial.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) longest: Duration,
    /// The delay of this machine's timers.
    pub(crate) lag: Duration,
    pub(crate) capped: u64,
    pub(crate) counted: u64,
    pub(crate) failed: u64,
    pub(crate) unsure: u64,
}

impl Outcome {
    /// Fails if the server counted a request twice, or missed an admitted request.
    pub(crate) async fn assert_server_count(&self, count_check: CountCheck, store: &RedisStore) {
        let sure = match count_check {
            CountCheck::Exact => self.counted,
            CountCheck::MayLack => 0,
            CountCheck::Skipped => return,
        };
        until_answered(store).await;
        let counted = key("counted");
        let peek = store
            .check(&[Charge::new("all", &COUNTED, &counted).cost(0)])
            .await
            .unwrap();
        let taken = COUNTED.capacity() - peek.statuses()[0].remaining();
        assert!(
            (sure..=self.counted + self.unsure).contains(&taken),
            "{taken} were counted: {self:?}"
        );
    }
}
