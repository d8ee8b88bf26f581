//! What a trial came to, compared with what the server has counted.

use std::time::Duration;

use tower_quota_core::{Charge, Store};
use tower_quota_redis::RedisStore;

use crate::load::{COUNTED, key};
use crate::rig::until_answered;

/// What can be said of the server's count at the end.
#[derive(Clone, Copy)]
pub(crate) enum Books {
    /// Every request that passed is there once, and no other, but for those that may have been counted.
    Kept,
    /// The same, but that any may be missing: it came back empty, or stands in for one that was ahead of it.
    MayLack,
    /// Nothing: there is no server to ask.
    Gone,
}

/// The account at the end.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) longest: Duration,
    /// How late the machine was of itself.
    pub(crate) lag: Duration,
    pub(crate) capped: u64,
    pub(crate) counted: u64,
    pub(crate) failed: u64,
    pub(crate) unsure: u64,
}

impl Outcome {
    /// Fails if a request was counted twice, or was not counted though it passed.
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
