//! Another policy beside this one: for some requests, or as a dry run.

use std::sync::Arc;

use tower_quota_core::{ConfigError, Name};

use super::Policy;
use crate::limit::Limit;
use crate::when::Condition;

/// A policy that decides the requests that match a condition.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) condition: Arc<dyn Condition>,
    pub(crate) policy: Policy,
}

impl Policy {
    /// The beginning of the names of limits that another policy adds by [`dry_run`](Self::dry_run).
    pub const DRY_RUN_PREFIX: &'static str = "~";

    /// Lets another policy decide the requests that match this condition, instead of this one.
    ///
    /// Use it for a change that begins with some clients, chosen by a hash of their key. Limits of one name in both
    /// policies share their counters. The other policy's own split is dropped. Operations of a
    /// [handle](crate::RateLimitHandle) are about this policy's limits.
    ///
    /// ```
    /// use tower_quota::{Limit, Policy, Quota, key};
    ///
    /// let of = |quota| Policy::new().limit(Limit::new("minute", quota).by(key::client_ip()));
    /// let policy = of(Quota::per_minute(100))
    ///     .split(|head| head.headers().contains_key("x-beta"), of(Quota::per_minute(200)));
    /// # let _ = policy;
    /// ```
    pub fn split(mut self, condition: impl Condition, mut policy: Self) -> Self {
        policy.split = None;
        self.split = Some(Box::new(Split {
            condition: Arc::new(condition),
            policy,
        }));
        self
    }

    /// Adds the limits of another policy as [shadows](Limit::shadow), under names of their own.
    ///
    /// Each name begins with [`DRY_RUN_PREFIX`](Self::DRY_RUN_PREFIX), so the shadow has a counter of its own.
    /// [`Decision::would_refuse`](crate::Decision::would_refuse) returns the shadows that would have refused. The
    /// lists and look-ups of the other policy are dropped. The store charges shadows only for admitted requests.
    ///
    /// If more than [`Charge::MOST`](crate::store::Charge::MOST) limits of both policies apply to a request, the
    /// store decides without the shadows.
    ///
    /// # Errors
    /// As those of [`try_limit`](Self::try_limit): a name is too long with the prefix, or the same key is read in another way.
    pub fn dry_run(mut self, policy: Self) -> Result<Self, ConfigError> {
        for limit in policy.limits {
            self = self.try_limit(shadow_of(limit))?;
        }
        for mut choice in policy.choices {
            choice.limits = choice.limits.into_iter().map(shadow_of).collect();
            for limit in &choice.limits {
                self.examine(limit)?;
            }
            self.choices.push(choice);
        }
        Ok(self)
    }
}

fn shadow_of(mut limit: Limit) -> Limit {
    limit.name = Name::from(format!("{}{}", Policy::DRY_RUN_PREFIX, limit.name));
    limit.shadow()
}
