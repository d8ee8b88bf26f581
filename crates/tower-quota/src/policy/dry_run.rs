use tower_quota_core::{ConfigError, Name};

use super::Policy;
use crate::limit::Limit;

impl Policy {
    /// The prefix of limits from a [`dry_run`](Self::dry_run).
    pub const DRY_RUN_PREFIX: &'static str = "~";

    /// Adds the limits of another policy as [shadows](Limit::shadow), with separate counters.
    ///
    /// The names begin with [`DRY_RUN_PREFIX`](Self::DRY_RUN_PREFIX). Lists and look-ups of the other policy are
    /// dropped. The store charges shadows for admitted requests only, and not above
    /// [`Charge::MOST`](crate::store::Charge::MOST) limits.
    ///
    /// # Errors
    /// Returns the errors of [`try_limit`](Self::try_limit), for example when a name is too long
    /// with the prefix.
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
