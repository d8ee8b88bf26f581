//! Policies: the limits of a request, decided together.

use tollgate_core::{ConfigError, Name};

use crate::degraded::OnStoreFailure;
use crate::limit::Limit;

/// The limits of a request, decided together in one step: either all of them are charged or none is.
///
/// ```
/// use tollgate::{Limit, Policy, Quota, key};
///
/// let policy = Policy::new()
///     .limit(Limit::new("burst", Quota::per_second(10).burst(20)).by(key::client_ip()))
///     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key")))
///     .limit(Limit::new("everyone", Quota::per_second(5_000)));
/// # let _ = policy;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Policy {
    pub(crate) limits: Vec<Limit>,
    pub(crate) on_store_failure: OnStoreFailure,
    instances: u32,
}

impl Policy {
    /// A policy without limits: every request passes, and the store is never asked.
    pub const fn new() -> Self {
        Self { limits: Vec::new(), on_store_failure: OnStoreFailure::Allow, instances: 1 }
    }

    /// Adds a limit.
    ///
    /// # Panics
    /// When the limit cannot be told from the others or could never be met; see [`Policy::try_limit`].
    #[track_caller]
    pub fn limit(self, limit: Limit) -> Self {
        match self.try_limit(limit) {
            Ok(policy) => policy,
            #[expect(clippy::panic, reason = "documented: a policy written in code fails at start")]
            Err(error) => panic!("{error}"),
        }
    }

    /// [`Policy::limit`] for limits that were not written in code.
    ///
    /// # Errors
    /// [`ConfigError`] when the name fits no header, is taken, or shares its stored number with another; when what the
    /// limit is counted by shares its stored number with what another is counted by, or its scope with a different
    /// extractor; when the constant cost is above the quota's capacity; or when the quota cannot be
    /// [divided](tollgate_core::Quota::divided) among the [instances](Self::instances).
    pub fn try_limit(mut self, mut limit: Limit) -> Result<Self, ConfigError> {
        limit.check()?;
        limit.divide(self.instances)?;
        for other in &self.limits {
            if limit.name == other.name {
                return Err(ConfigError::DuplicateLimit(limit.name));
            }
            if limit.stored_ids().any(|id| other.stored_ids().any(|taken| taken == id)) {
                return Err(ConfigError::CollidingNames(other.name, limit.name));
            }
            let (one, another) = (&limit.extractor, &other.extractor);
            distinct(one.scope(), another.scope())?;
            if one.scope() == another.scope() && one.types() != another.types() {
                return Err(ConfigError::SharedScope(one.scope()));
            }
        }
        self.limits.push(limit);
        Ok(self)
    }

    /// What limits that do not [say](Limit::on_store_failure) themselves do when the store cannot be asked. The default
    /// is [`OnStoreFailure::Allow`].
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = choice;
        self
    }

    /// How many instances of the service there are, at most: each takes this part of a quota where a limit is
    /// [`OnStoreFailure::Local`] and the store cannot be asked. The default is 1, by which every instance takes all of
    /// it; more instances than are told here admit more than the quota together.
    ///
    /// # Panics
    /// When this is 0, or a quota cannot be divided so; see [`Policy::try_instances`].
    #[track_caller]
    pub fn instances(self, expected: u32) -> Self {
        match self.try_instances(expected) {
            Ok(policy) => policy,
            #[expect(clippy::panic, reason = "documented: a policy written in code fails at start")]
            Err(error) => panic!("{error}"),
        }
    }

    /// [`Policy::instances`] for a number that was not written in code.
    ///
    /// # Errors
    /// [`ConfigError`] when this is 0, or when the quota of one of the limits, whatever it does when the store fails,
    /// cannot be [divided](tollgate_core::Quota::divided) so.
    pub fn try_instances(mut self, expected: u32) -> Result<Self, ConfigError> {
        if expected == 0 {
            return Err(ConfigError::ZeroInstances);
        }
        for limit in &mut self.limits {
            limit.divide(expected)?;
        }
        self.instances = expected;
        Ok(self)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

/// Names that differ must differ in their stored numbers too.
fn distinct(one: Name, other: Name) -> Result<(), ConfigError> {
    if one != other && one.id() == other.id() {
        return Err(ConfigError::CollidingNames(other, one));
    }
    Ok(())
}
