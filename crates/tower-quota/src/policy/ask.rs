//! What a policy asks the store about one request.

use core::time::Duration;

use smallvec::SmallVec;
use tower_quota_core::{Charge, Key, Name, OwnedCharge, Quota};

use super::plan::{Plan, PlannedLimit};
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::limit::WithoutKey;

/// Requests rarely have more limits than this. Longer lists are allocated.
const FEW: usize = 4;

/// The limits that apply to a request, each with its key, quota and cost.
///
/// Extractors, conditions, quotas and costs run once to make it, whatever happens to the store afterwards.
pub(crate) struct Ask<'p, 'r> {
    plan: &'p Plan,
    keys: SmallVec<[RequestKey<'r>; FEW]>,
    parts: SmallVec<[Part<'p>; FEW]>,
}

/// A key of the request, and its position in the plan.
struct RequestKey<'r> {
    planned: usize,
    is_missing: bool,
    key: Key<'r>,
}

/// One limit's part in the request.
struct Part<'p> {
    planned: &'p PlannedLimit,
    /// The position of its key among those of the request.
    key: usize,
    /// The quota that the request has instead of the limit's own.
    quota: Option<Quota>,
    units: u64,
}

/// Why the store is not asked about a request.
pub(crate) enum NotAsked {
    /// No limit applies.
    NoLimit,
    /// A limit refuses requests without a key of this scope.
    MissingKey(Name),
    /// A limit asks for credentials of this scope.
    Unauthenticated(Name),
    /// A limit counts by the address of the peer, which the server did not attach.
    NoPeerAddress,
}

/// What happens to a request if the store fails.
#[derive(Default)]
pub(crate) struct Fallback {
    /// Says whether a limit refuses the request.
    pub(crate) refuses: bool,
    /// The charges that this instance decides by its share of the quotas.
    pub(crate) local: Vec<OwnedCharge>,
    /// Says whether all limits that apply are shadows.
    pub(crate) only_shadows: bool,
}

impl<'p, 'r> Ask<'p, 'r> {
    /// Makes an empty one, to be [filled](Self::read) in place: it is large.
    #[inline]
    pub(crate) fn new(plan: &'p Plan) -> Self {
        Self { plan, keys: SmallVec::new(), parts: SmallVec::new() }
    }

    /// Reads what the limits of the plan need to know of a request.
    #[inline]
    pub(crate) fn read(&mut self, head: &RequestHead<'r>) -> Result<(), NotAsked> {
        for planned in &self.plan.limits {
            let limit = &planned.limit;
            if !limit.applies(head) {
                continue;
            }
            let key = self.key(planned.key, head);
            if self.keys[key].is_missing {
                match limit.without_key(head) {
                    WithoutKey::Share => {}
                    WithoutKey::Skip => continue,
                    WithoutKey::Refuse => return Err(NotAsked::MissingKey(limit.extractor.scope())),
                    WithoutKey::Unauthenticated => return Err(NotAsked::Unauthenticated(limit.extractor.scope())),
                    WithoutKey::NoPeerAddress => return Err(NotAsked::NoPeerAddress),
                }
            }
            self.parts.push(Part { planned, key, quota: limit.other_quota(head), units: limit.units(head) });
        }
        if self.parts.is_empty() { Err(NotAsked::NoLimit) } else { Ok(()) }
    }

    /// Returns the position of a key among those of the request, read now if it was not.
    #[inline]
    fn key(&mut self, planned: usize, head: &RequestHead<'r>) -> usize {
        self.keys.iter().position(|known| known.planned == planned).unwrap_or_else(|| {
            let source = &self.plan.keys[planned];
            let found = source.extractor.extract(head);
            let is_missing = found.is_none();
            self.keys.push(RequestKey { planned, is_missing, key: found.unwrap_or_else(|| source.shared.clone()) });
            self.keys.len() - 1
        })
    }

    /// Returns the charges of the request, that may wait at most this long if there is a bound.
    #[inline]
    pub(crate) fn charges(&self, max_wait: Option<Duration>) -> SmallVec<[Charge<'_>; FEW]> {
        let charge = |part| {
            let charge = self.charge(part);
            match max_wait {
                Some(longest) if charge.patience_micros() > 0 => charge.patience(longest),
                _ => charge,
            }
        };
        self.parts.iter().map(charge).collect()
    }

    #[inline]
    fn charge<'a>(&'a self, part: &'a Part<'p>) -> Charge<'a> {
        let limit = &part.planned.limit;
        limit.charge(part.quota.as_ref().unwrap_or(&limit.quota), &self.keys[part.key].key, part.units)
    }

    /// Returns the quotas that the request has instead of those of the limits of these names.
    pub(crate) fn overrides(&self) -> Vec<(Name, Quota)> {
        self.parts.iter().filter_map(|part| Some((part.planned.limit.name, part.quota?))).collect()
    }

    /// Returns the limits that apply, each with the key it counts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Name, &Key<'r>)> {
        self.parts.iter().map(|part| (part.planned.limit.name, &self.keys[part.key].key))
    }

    /// Returns the keys that were read: the position of each in the plan, and whether it is missing.
    pub(crate) fn keys_read(&self) -> impl Iterator<Item = (usize, bool)> {
        self.keys.iter().map(|key| (key.planned, key.is_missing))
    }

    /// Returns the scope of the key that a limit counts, and the units that it takes, if it applies.
    pub(crate) fn part_of(&self, limit: Name) -> Option<(Name, u64)> {
        let part = self.parts.iter().find(|part| part.planned.limit.name == limit)?;
        Some((self.keys[part.key].key.scope(), part.units))
    }

    /// Returns whether the key that a limit counts by was read and is missing.
    pub(crate) fn lacks_key_of(&self, limit: Name) -> bool {
        let planned = self.plan.limits.iter().find(|planned| planned.limit.name == limit);
        planned.is_some_and(|planned| self.keys.iter().any(|key| key.is_missing && key.planned == planned.key))
    }

    /// Returns what the limits do if the store fails.
    pub(crate) fn fallback(&self) -> Fallback {
        let mut fallback = Fallback { only_shadows: true, ..Fallback::default() };
        for part in &self.parts {
            let limit = &part.planned.limit;
            fallback.only_shadows &= limit.is_shadow();
            match part.planned.on_store_failure {
                OnStoreFailure::Allow => {}
                OnStoreFailure::Refuse => fallback.refuses = true,
                OnStoreFailure::Local => {
                    let share = match &part.quota {
                        Some(quota) => quota.try_divided(self.plan.instances).ok(),
                        None => Some(limit.share),
                    };
                    match share {
                        Some(share) => fallback.local.push(OwnedCharge::from(&self.charge(part)).with_quota(share)),
                        // A share of a request's own quota that cannot be represented admits nothing.
                        None => fallback.refuses |= !limit.is_shadow(),
                    }
                }
            }
        }
        fallback
    }
}
