//! The units that a request holds for a [concurrency limit](crate::Quota::concurrent).

use core::error::Error;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use http::response::Parts;
use tower_quota_core::Name;

use super::rule::SettleRule;
use super::{ResponseEnd, Rule, Settle};

pub(crate) fn release() -> SettleRule {
    SettleRule {
        rule: Arc::new(Release),
        abandoned: Settle::Refund,
    }
}

struct Release;

impl Rule for Release {
    fn at_head(&self, _: &Parts) -> Option<Settle> {
        None
    }

    fn at_end(&self, _: &ResponseEnd<'_>) -> Settle {
        Settle::Refund
    }
}

/// The longest time for which the layer renews a hold. Clones log the first hold that reaches the end.
#[derive(Clone)]
pub(crate) struct LongestHold {
    pub(super) longest: Duration,
    is_logged: Arc<AtomicBool>,
}

impl LongestHold {
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            is_logged: Arc::default(),
        }
    }

    pub(crate) fn log(&self, limit: Name, longest: Duration) {
        if self.is_logged.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(
            target: "tower_quota",
            "the limit {:?}: a request has held units for {longest:?}, so the units return while the request runs. \
             Put timeouts for bodies and responses inside the layer. This is logged once",
            limit.as_str(),
        );
    }
}

/// Units in use that the store has lost.
#[derive(Debug)]
pub(crate) struct LostHold(pub(crate) Name);

/// A failed release that the layer no longer repeats.
#[derive(Debug)]
pub(crate) struct DroppedRelease;

impl fmt::Display for LostHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the store has lost units in use of the limit {:?}, so they are taken again",
            self.0.as_str(),
        )
    }
}

impl Error for LostHold {}

impl fmt::Display for DroppedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "too many failed releases wait for the store, so the oldest units return by their expiry",
        )
    }
}

impl Error for DroppedRelease {}
