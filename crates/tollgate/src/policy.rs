//! Policies: the limits of a request, decided together.

use tollgate_core::{ConfigError, Name};

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
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Policy {
    pub(crate) limits: Vec<Limit>,
    pub(crate) on_store_failure: OnStoreFailure,
}

/// What a request gets when the store cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// It goes ahead, uncounted and without rate limit headers: a limiter must not take the service down.
    #[default]
    Allow,
    /// It is refused: 503, or `UNAVAILABLE` for gRPC. For logins and payments, where uncounted is worse than unserved.
    Refuse,
}

impl Policy {
    /// A policy without limits: every request passes, and the store is never asked.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a limit.
    ///
    /// # Panics
    /// When the limit cannot be told from the others or could never be met; see [`Policy::try_limit`].
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
    /// limit is counted by shares its stored number with what another is counted by; or when the constant cost is above
    /// the quota's capacity.
    pub fn try_limit(mut self, limit: Limit) -> Result<Self, ConfigError> {
        limit.check()?;
        for other in &self.limits {
            if limit.name == other.name {
                return Err(ConfigError::DuplicateLimit(limit.name));
            }
            distinct(limit.name, other.name)?;
            distinct(limit.extractor.scope(), other.extractor.scope())?;
        }
        self.limits.push(limit);
        Ok(self)
    }

    /// What requests get when the store cannot be asked. The default is [`OnStoreFailure::Allow`].
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = choice;
        self
    }
}

/// Names that differ must differ in their stored numbers too.
fn distinct(one: Name, other: Name) -> Result<(), ConfigError> {
    if one != other && one.id() == other.id() {
        return Err(ConfigError::CollidingNames(other, one));
    }
    Ok(())
}
