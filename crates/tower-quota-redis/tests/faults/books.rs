//! Compares the result of a trial with what the server has counted.

use std::time::Duration;

use tower_quota_core::{Charge, Store};
use tower_quota_redis::RedisStore;

use crate::load::{COUNTED, key};
use crate::rig::until_answered;

/// How exact the server's count can be at the end.
#[derive(Clone, Copy)]
pub(crate) enum Books {
    /// Every admitted request is counted once, and no other, except those that may have been counted.
    Kept,
    /// The same, but counts may be missing: the server came back empty, or replaces one that was ahead of it.
    MayLack,
    /// There is no server to ask.
    Gone,
}

/// The figures of a trial.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) longest: Duration,
    /// How late this machine's timers were.
    pub(crate) lag: Duration,
    pub(crate) capped: u64,
    pub(crate) counted: u64,
    pub(crate) failed: u64,
    pub(crate) unsure: u64,
}

impl Outcome {
    /// Fails if a request was counted twice, or was admitted and not counted.
    pub(crate) async fn is_borne_out(&self, books: Books, store: &RedisStore) {
        let sure = match books {
            Books::Kept => self.counted,
            Books::MayLack => 0,
            Books::Gone => return,
        };
        until_answered(store).await;
        let counted = key("counted");
        let peek = store.check(&[Charge::new("all", &COUNTED, &counted).cost(0)]).await.unwrap();
        let taken = COUNTED.capacity() - peek.statuses()[0].remaining();
        assert!((sure..=self.counted + self.unsure).contains(&taken), "{taken} were counted: {self:?}");
    }
}
