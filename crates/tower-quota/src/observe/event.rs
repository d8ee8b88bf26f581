use core::error::Error;
use core::time::Duration;
use std::time::Instant;

use tower_quota_core::Decision;

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::observe::Decided;
use crate::request::RequestContext;

/// Something that happened to a request, or to a call of the store.
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "only metrics read each part")
)]
pub(crate) enum Event<'a> {
    /// The request passes uncounted, because of a list, or because no limit applies.
    Skipped(RequestHead<'a>),
    /// The request is admitted or refused. The memory store began this sampled decision at `since`.
    Decided {
        decided: &'a Decided<'a>,
        since: Option<Instant>,
    },
    /// The store has answered a call.
    Answered {
        decision: &'a Decision,
        context: &'a RequestContext,
        duration: Duration,
    },
    /// A call of the store has failed.
    Failed(StoreFailure<'a>),
}

/// A failed call of the store.
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "only metrics read each part")
)]
pub(crate) struct StoreFailure<'a> {
    pub(crate) kind: StoreFailureKind,
    pub(crate) error: &'a (dyn Error + 'static),
    /// The duration of a failed decision.
    pub(crate) duration: Option<Duration>,
    /// How the layer decides the request without the store.
    pub(crate) choice: Option<OnStoreFailure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreFailureKind {
    Store,
    Timeout,
    Settle,
    /// A renewal found that the store has lost units in use.
    LostHold,
}

impl StoreFailureKind {
    pub(crate) const LABELS: [&str; 4] = ["store", "timeout", "settle", "lost_hold"];

    pub(crate) const fn label(self) -> &'static str {
        Self::LABELS[self as usize]
    }
}
