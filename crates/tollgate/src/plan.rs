//! A policy made ready to be asked: each subject once, whatever never changes worked out ahead.

use smallvec::SmallVec;
use std::sync::Arc;

use tollgate_core::{Charge, Key, Name};

use crate::answer::Fields;
use crate::head::RequestHead;
use crate::key::KeyExtractor;
use crate::limit::{Limit, MissingKey};
use crate::policy::{OnStoreFailure, Policy};

/// Requests rarely have more limits than this; beyond it the lists spill to the heap.
const FEW: usize = 4;

#[derive(Debug)]
pub(crate) struct Plan {
    limits: Vec<(Limit, SubjectIndex)>,
    subjects: Vec<Subject>,
    pub(crate) fields: Fields,
    pub(crate) on_store_failure: OnStoreFailure,
}

type SubjectIndex = usize;

/// Something that requests are counted by.
struct Subject {
    extractor: Arc<dyn KeyExtractor>,
    /// The key of all requests that have none.
    shared: Key<'static>,
}

/// What a request gets asked of the store.
pub(crate) enum Asked<T> {
    /// No limit applies.
    Nothing,
    /// A limit refuses requests without a key of this scope.
    Missing(Name),
    /// The charges were handed over; this came back.
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
                (limit, subject)
            })
            .collect();
        Self { limits, subjects, fields, on_store_failure: policy.on_store_failure }
    }

    /// Reads the keys of a request and hands the charges of the limits that apply to `check`.
    pub(crate) fn ask<T>(&self, head: &RequestHead<'_>, check: impl FnOnce(&[Charge<'_>]) -> T) -> Asked<T> {
        // Each subject's key, once it has been asked for: `Some(None)` is a missing one.
        let mut keys: SmallVec<[Option<Option<Key<'_>>>; FEW]> = self.subjects.iter().map(|_| None).collect();
        let mut applying: SmallVec<[&(Limit, SubjectIndex); FEW]> = SmallVec::new();
        for entry @ (limit, subject) in &self.limits {
            if !limit.applies(head) {
                continue;
            }
            let key = keys[*subject].get_or_insert_with(|| self.subjects[*subject].extractor.extract(head));
            match limit.missing {
                MissingKey::Skip if key.is_none() => {}
                MissingKey::Refuse if key.is_none() => return Asked::Missing(limit.extractor.scope()),
                _ => applying.push(entry),
            }
        }
        if applying.is_empty() {
            return Asked::Nothing;
        }
        let charges: SmallVec<[Charge<'_>; FEW]> = applying
            .into_iter()
            .map(|(limit, subject)| {
                let key = keys[*subject].as_ref().and_then(Option::as_ref);
                limit.charge(key.unwrap_or(&self.subjects[*subject].shared), head)
            })
            .collect();
        Asked::Charged(check(&charges))
    }
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Subject({})", self.shared.scope())
    }
}
