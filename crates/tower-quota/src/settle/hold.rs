//! The units that a request holds for a [concurrency limit](crate::Quota::concurrent).

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

pub(super) struct Renewal(AbortHandle);

impl Renewal {
    /// Starts the renewals. Without a runtime, holds expire after their `ttl`.
    pub(super) fn start(
        holds: Vec<OwnedCharge>,
        renew: impl Fn(&[Charge<'_>]) + Send + 'static,
    ) -> Option<Self> {
        let shortest = holds.iter().map(|hold| hold.as_charge().quota().period());
        let shortest = shortest.min()?;
        let renewing = async move {
            let charges: Vec<Charge<'_>> = holds.iter().map(OwnedCharge::as_charge).collect();
            loop {
                // Renewing after a third of the time leaves room to repeat a failed renewal.
                #[expect(clippy::disallowed_methods, reason = "a renewal is waited for")]
                tokio::time::sleep(shortest / 3).await;
                renew(&charges);
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
