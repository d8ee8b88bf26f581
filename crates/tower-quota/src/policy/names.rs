use std::collections::BTreeMap;

use tower_quota_core::{ConfigError, Name};

use crate::key::identity;
use crate::limit::Limit;

#[derive(Clone, Default)]
pub(super) struct Names {
    limits: BTreeMap<u32, Name>,
    /// The scopes of keys, with the identities of the extractors.
    scopes: BTreeMap<u32, (Name, u64)>,
}

impl Names {
    /// Adds the names of a limit, or leaves the names unchanged on an error.
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
