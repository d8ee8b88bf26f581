//! The names that a policy's limits use, so that a further limit is compared with none of the others.

use std::collections::BTreeMap;

use tower_quota_core::{ConfigError, Name};

use crate::key::identity;
use crate::limit::Limit;

/// The stored numbers of a policy's limits and scopes, with their names.
#[derive(Clone, Debug)]
pub(super) struct Names {
    limits: BTreeMap<u32, Name>,
    /// The scopes of keys, each with the identity of its extractor.
    scopes: BTreeMap<u32, (Name, u64)>,
}

impl Names {
    pub(super) const fn new() -> Self {
        Self {
            limits: BTreeMap::new(),
            scopes: BTreeMap::new(),
        }
    }

    /// Adds the names of a limit.
    ///
    /// # Errors
    /// [`ConfigError`] when a name is used, or has the same stored number as another one, or when its scope is that of
    /// a different extractor. Nothing is added then.
    pub(super) fn add(&mut self, limit: &Limit) -> Result<(), ConfigError> {
        for id in limit.stored_ids() {
            match self.limits.get(&id) {
                Some(other) if *other == limit.name => {
                    return Err(ConfigError::DuplicateLimit(limit.name));
                }
                Some(other) => return Err(ConfigError::CollidingNames(*other, limit.name)),
                None => {}
            }
        }
        let (scope, identity) = (limit.extractor.scope(), identity(&*limit.extractor));
        match self.scopes.get(&scope.id()) {
            Some((other, _)) if *other != scope => {
                return Err(ConfigError::CollidingNames(*other, scope));
            }
            Some((_, other)) if *other != identity => return Err(ConfigError::SharedScope(scope)),
            _ => {}
        }
        self.limits
            .extend(limit.stored_ids().map(|id| (id, limit.name)));
        self.scopes.insert(scope.id(), (scope, identity));
        Ok(())
    }
}
