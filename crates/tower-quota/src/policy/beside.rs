use std::sync::Arc;

use tower_quota_core::{ConfigError, Name};

use super::Policy;
use crate::limit::Limit;
use crate::when::Condition;

#[derive(Clone)]
pub(crate) struct Split {
    pub(crate) condition: Arc<dyn Condition>,
    pub(crate) policy: Policy,
}

impl Policy {
    /// The prefix of limits from a [`dry_run`](Self::dry_run).
    pub const DRY_RUN_PREFIX: &'static str = "~";

    /// Lets another policy decide the requests that match this condition.
    ///
    /// Use `split` for a gradual roll-out, by a hash of the client's key. Limits with the same name share counters. The
    /// other policy's own split is dropped. A [handle](crate::RateLimitHandle) finds the limits of both policies. For a
    /// name in both, the handle takes the policy of the client's request, or else the first policy.
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

    /// Adds the limits of another policy as [shadows](Limit::shadow), with separate counters.
    ///
    /// The names begin with [`DRY_RUN_PREFIX`](Self::DRY_RUN_PREFIX). Lists and look-ups of the other policy are
    /// dropped. The store charges shadows for admitted requests only, and not above
    /// [`Charge::MOST`](crate::store::Charge::MOST) limits.
    ///
    /// # Errors
    /// The errors of [`try_limit`](Self::try_limit), for example when a name is too long with the prefix.
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
