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
        let degraded = limit.degraded.as_ref();
        let extractors = [
            Some(&limit.extractor),
            degraded.map(|degraded| &degraded.extractor),
        ];
        let mut added: Vec<(Name, u64)> = Vec::new();
        for extractor in extractors.into_iter().flatten() {
            let (scope, identity) = (extractor.scope(), identity(&**extractor));
            let known = self.scopes.get(&scope.id());
            for (other, its_identity) in known.into_iter().chain(&added) {
                if other.id() == scope.id() && *other != scope {
                    return Err(ConfigError::CollidingNames(*other, scope));
                }
                if *other == scope && *its_identity != identity {
                    return Err(ConfigError::SharedScope(scope));
                }
            }
            added.push((scope, identity));
        }
        for (scope, identity) in added {
            self.scopes.insert(scope.id(), (scope, identity));
        }
        self.limits
            .extend(limit.stored_ids().map(|id| (id, limit.name)));
        Ok(())
    }
}
