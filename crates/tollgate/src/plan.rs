//! A policy made ready to be asked: each subject once, whatever never changes worked out ahead.

use smallvec::SmallVec;
use std::sync::Arc;

use tollgate_core::{Charge, Key, Name};

use crate::answer::Fields;
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::KeyExtractor;
use crate::limit::{Limit, MissingKey};
use crate::policy::Policy;

/// Requests rarely have more limits than this; beyond it the lists spill to the heap.
const FEW: usize = 4;

#[derive(Debug)]
pub(crate) struct Plan {
    limits: Vec<Planned>,
    subjects: Vec<Subject>,
    pub(crate) fields: Fields,
}

#[derive(Debug)]
struct Planned {
    limit: Limit,
    /// The position of what it counts.
    subject: usize,
    on_store_failure: OnStoreFailure,
}

/// Something that requests are counted by.
struct Subject {
    extractor: Arc<dyn KeyExtractor>,
    /// The key of all requests that have none.
    shared: Key<'static>,
}

/// The keys of a request, each subject's once it has been asked for: `Some(None)` is a missing one.
type Keys<'r> = SmallVec<[Option<Option<Key<'r>>>; FEW]>;

type Applying<'p> = SmallVec<[&'p Planned; FEW]>;

/// What a request gets asked of the store.
pub(crate) enum Asked<T> {
    /// No limit applies.
    Nothing,
    /// A limit refuses requests without a key of this scope.
    Missing(Name),
    /// The charges were handed over; this came back.
    Charged(T),
}

/// What a request gets that the store could not be asked about.
pub(crate) enum Fallback<T> {
    /// A limit refuses such requests.
    Refuse,
    /// No limit counts it.
    Uncounted,
    /// The charges of the limits that this instance counts by itself were handed over; this came back.
    Charged(T),
}

impl Plan {
    pub(crate) fn new(policy: Policy) -> Self {
        let fields = Fields::new(&policy.limits);
        let mut subjects: Vec<Subject> = Vec::new();
        let limits = policy
            .limits
            .into_iter()
            .map(|limit| {
                let scope = limit.extractor.scope();
                let subject = subjects.iter().position(|known| known.shared.scope() == scope).unwrap_or_else(|| {
                    subjects.push(Subject { extractor: Arc::clone(&limit.extractor), shared: Key::new(scope, &[]) });
                    subjects.len() - 1
                });
                let on_store_failure = limit.without_store(policy.on_store_failure);
                Planned { limit, subject, on_store_failure }
            })
            .collect();
        Self { limits, subjects, fields }
    }

    /// Reads the keys of a request and hands the charges of the limits that apply to `check`.
    pub(crate) fn ask<T>(&self, head: &RequestHead<'_>, check: impl FnOnce(&[Charge<'_>]) -> T) -> Asked<T> {
        let (keys, applying) = match self.read(head) {
            Ok((_, applying)) if applying.is_empty() => return Asked::Nothing,
            Ok(read) => read,
            Err(scope) => return Asked::Missing(scope),
        };
        let charges: SmallVec<[Charge<'_>; FEW]> =
            applying.into_iter().map(|planned| planned.limit.charge(self.key(&keys, planned), head)).collect();
        Asked::Charged(check(&charges))
    }

    /// The same for a request that the store could not be asked about: what its limits then do, and the charges of
    /// those that this instance counts by itself.
    pub(crate) fn fall_back<T>(&self, head: &RequestHead<'_>, check: impl FnOnce(&[Charge<'_>]) -> T) -> Fallback<T> {
        let Ok((keys, applying)) = self.read(head) else {
            // It had its keys when the store was asked: an extractor has changed its mind.
            return Fallback::Refuse;
        };
        if applying.iter().any(|planned| planned.on_store_failure == OnStoreFailure::Refuse) {
            return Fallback::Refuse;
        }
        let charges: SmallVec<[Charge<'_>; FEW]> = applying
            .into_iter()
            .filter(|planned| planned.on_store_failure == OnStoreFailure::Local)
            .map(|planned| planned.limit.charge_of_share(self.key(&keys, planned), head))
            .collect();
        if charges.is_empty() { Fallback::Uncounted } else { Fallback::Charged(check(&charges)) }
    }

    /// The limits that apply to a request and the keys they count; otherwise the scope of the key without which a limit
    /// refuses it.
    fn read<'r>(&self, head: &RequestHead<'r>) -> Result<(Keys<'r>, Applying<'_>), Name> {
        let mut keys: Keys<'r> = self.subjects.iter().map(|_| None).collect();
        let mut applying = Applying::new();
        for planned in self.limits.iter().filter(|planned| planned.limit.applies(head)) {
            let Planned { limit, subject, .. } = planned;
            let key = keys[*subject].get_or_insert_with(|| self.subjects[*subject].extractor.extract(head));
            match limit.without_key() {
                MissingKey::Skip if key.is_none() => {}
                MissingKey::Refuse if key.is_none() => return Err(limit.extractor.scope()),
                _ => applying.push(planned),
            }
        }
        Ok((keys, applying))
    }

    /// The key that a limit counts.
    fn key<'k, 'r: 'k>(&'k self, keys: &'k Keys<'r>, planned: &Planned) -> &'k Key<'k> {
        let read = keys[planned.subject].as_ref().and_then(Option::as_ref);
        read.unwrap_or(&self.subjects[planned.subject].shared)
    }
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Subject({})", self.shared.scope())
    }
}
