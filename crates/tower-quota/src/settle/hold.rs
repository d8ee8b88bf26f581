//! The units that a request holds for a [concurrency limit](crate::Quota::concurrent).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use http::response::Parts;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tower_quota_core::{Charge, OwnedCharge};

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
    longest: Duration,
    is_logged: Arc<AtomicBool>,
}

impl LongestHold {
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            is_logged: Arc::default(),
        }
    }
}

/// Units to renew.
pub(super) struct HeldUnits {
    pub(super) charge: OwnedCharge,
    pub(super) longest: Option<LongestHold>,
}

impl HeldUnits {
    fn ttl(&self) -> Duration {
        self.charge.as_charge().quota().period()
    }

    /// Returns whether the longest hold ends before the units expire. Logs the first such hold.
    fn is_over(&self, age: Duration) -> bool {
        let Some(LongestHold { longest, is_logged }) = &self.longest else {
            return false;
        };
        // The last renewal was at most a third of the `ttl` ago.
        let expires = age + self.ttl() - self.ttl() / 3;
        if expires >= *longest && !is_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "tower_quota",
                "the limit {:?}: a request has held units for {longest:?}, so the units return while the request runs. \
                 Put timeouts for bodies and responses inside the layer. This is logged once",
                self.charge.name().as_str(),
            );
        }
        expires >= *longest
    }
}

pub(super) struct Renewal(AbortHandle);

impl Renewal {
    /// Starts the renewals. Without a runtime, holds expire after their `ttl`.
    pub(super) fn start(
        mut holds: Vec<HeldUnits>,
        renew: impl Fn(&[Charge<'_>]) + Send + 'static,
    ) -> Option<Self> {
        let shortest = holds.iter().map(HeldUnits::ttl).min()?;
        let renewing = async move {
            let mut age = Duration::ZERO;
            while !holds.is_empty() {
                // Renewing after a third of the time leaves room to repeat a failed renewal.
                #[expect(clippy::disallowed_methods, reason = "a renewal is waited for")]
                tokio::time::sleep(shortest / 3).await;
                age += shortest / 3;
                holds.retain(|hold| !hold.is_over(age));
                let charges: Vec<Charge<'_>> =
                    holds.iter().map(|hold| hold.charge.as_charge()).collect();
                if !charges.is_empty() {
                    renew(&charges);
                }
            }
        };
        let task = Handle::try_current().ok()?.spawn(renewing);
        Some(Self(task.abort_handle()))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}
