//! A policy made ready to be asked: each subject once, whatever never changes worked out ahead.

mod fall_back;

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Charge, Decision, Key, Name, Outcome, Quota};

pub(crate) use self::fall_back::Fallback;

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::KeyExtractor;
use crate::limit::{Limit, MissingKey};
use crate::lists::{Listed, Lists};
use crate::look_up::{LookUp, LookingUp};
use crate::policy::Policy;
use crate::settle::{Kept, Ledger, Terms};

/// Requests rarely have more limits than this; beyond it the lists spill to the heap.
const FEW: usize = 4;

#[derive(Debug)]
pub(crate) struct Plan {
    limits: Vec<Planned>,
    subjects: Vec<Subject>,
    lists: Lists,
    look_ups: Vec<LookUp>,
    instances: u32,
    /// Whether a limit settles.
    settles: bool,
    /// Whether a limit makes requests wait.
    makes_wait: bool,
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

type Charges<'a> = SmallVec<[Charge<'a>; FEW]>;

/// The quotas that a request has instead of those of the limits of these names. Nearly always none, and then nothing is
/// allocated.
pub(crate) type Overrides = Vec<(Name, Quota)>;

/// How a request comes in.
pub(crate) enum Entry {
    /// Its limits are asked.
    Count,
    /// Its limits are asked when this has been found out.
    LookUp(LookingUp),
    /// It is not limited.
    Free,
    /// It is refused.
    Blocked,
}

/// What a request gets asked of the store.
pub(crate) enum Asked<T> {
    /// No limit applies.
    Nothing,
    /// A limit refuses requests without a key of this scope.
    Missing(Name),
    /// The charges were handed over, by these quotas in place of the limits' own; this came back.
    Charged(T, Overrides),
}

impl Plan {
    pub(crate) fn new(policy: Policy) -> Self {
        let settles = policy.limits.iter().any(|limit| limit.terms.is_some());
        let makes_wait = policy.limits.iter().any(Limit::makes_wait);
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
        let (lists, look_ups, instances) = (policy.lists, policy.look_ups, policy.instances);
        Self { limits, subjects, lists, look_ups, instances, settles, makes_wait }
    }

    /// The limits, in the order of the policy.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().map(|planned| &planned.limit)
    }

    /// Looks a request up in the lists, and begins its look-ups.
    pub(crate) fn enter(&self, head: &RequestHead<'_>) -> Entry {
        match self.lists.find(head) {
            Listed::Free => Entry::Free,
            Listed::Blocked => Entry::Blocked,
            Listed::No if self.look_ups.is_empty() => Entry::Count,
            Listed::No => Entry::LookUp(LookingUp::begin(&self.look_ups, head)),
        }
    }

    /// Reads the keys of a request and hands the charges of the limits that apply to `check`.
    pub(crate) fn ask<T>(&self, head: &RequestHead<'_>, check: impl FnOnce(&[Charge<'_>]) -> T) -> Asked<T> {
        let (keys, applying) = match self.read(head) {
            Ok((_, applying)) if applying.is_empty() => return Asked::Nothing,
            Ok(read) => read,
            Err(scope) => return Asked::Missing(scope),
        };
        let overrides: Overrides = other_quotas(&applying, head).collect();
        let charges = applying.into_iter().map(|planned| {
            let quota = quota_of(planned, &overrides).unwrap_or(&planned.limit.quota);
            planned.limit.charge(quota, self.key(&keys, planned), head)
        });
        let answer = check(&charges.collect::<Charges<'_>>());
        Asked::Charged(answer, overrides)
    }

    /// What something makes of the keys of a request that has been decided on. They are read anew, so that requests pay
    /// for it only where it is wanted.
    pub(crate) fn each_key<T>(&self, head: &RequestHead<'_>, of: impl Fn(&Key<'_>) -> Option<T>) -> Box<[(Name, T)]> {
        let Ok((keys, applying)) = self.read(head) else { return Box::default() };
        let pair = |planned: &Planned| Some((planned.limit.name, of(self.key(&keys, planned))?));
        applying.into_iter().filter_map(pair).collect()
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

    /// What has to be kept of a request's charges: those that are settled, or all of them where the request may have to
    /// wait, for its turn may have to be given back.
    pub(crate) fn ledger(&self, charges: &[Charge<'_>]) -> Option<Ledger> {
        let makes_wait = |charge: &Charge<'_>| !charge.is_shadow() && charge.patience_micros() > 0;
        let may_wait = self.makes_wait && charges.iter().any(makes_wait);
        if !may_wait && !self.settles {
            return None;
        }
        let kept = charges.iter().map(|charge| Kept::of(charge, self.terms(charge.name())));
        let ledger: Ledger = kept.filter(|kept| may_wait || kept.terms().is_some()).collect();
        (!ledger.is_empty()).then_some(ledger)
    }

    /// The most that may be added to a request's wait: what the limits say that make it wait.
    pub(crate) fn jitter(&self, decision: &Decision) -> Duration {
        let waiting = decision.enforced().filter(|standing| matches!(standing.outcome, Outcome::Wait(_)));
        let jitters = waiting.filter_map(|standing| self.limit(standing.name)).map(|limit| limit.jitter);
        jitters.max().unwrap_or_default()
    }

    fn terms(&self, name: Name) -> Option<Terms> {
        self.limit(name)?.terms.clone()
    }

    fn limit(&self, name: Name) -> Option<&Limit> {
        self.limits().find(|limit| limit.name == name)
    }

    /// The key that a limit counts.
    fn key<'k, 'r: 'k>(&'k self, keys: &'k Keys<'r>, planned: &Planned) -> &'k Key<'k> {
        let read = keys[planned.subject].as_ref().and_then(Option::as_ref);
        read.unwrap_or(&self.subjects[planned.subject].shared)
    }
}

/// The quotas that a request has instead of its limits' own.
fn other_quotas(applying: &[&Planned], head: &RequestHead<'_>) -> impl Iterator<Item = (Name, Quota)> {
    applying.iter().filter_map(|planned| Some((planned.limit.name, planned.limit.other_quota(head)?)))
}

/// The quota that a limit has for this request instead of its own.
fn quota_of<'o>(planned: &Planned, overrides: &'o [(Name, Quota)]) -> Option<&'o Quota> {
    overrides.iter().find(|(name, _)| *name == planned.limit.name).map(|(_, quota)| quota)
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Subject({})", self.shared.scope())
    }
}
