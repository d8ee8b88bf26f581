//! A policy made ready to be asked: each subject once, whatever never changes worked out ahead.

mod asking;
mod fall_back;

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{Charge, Decision, Key, Name, Outcome, Quota};

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
    /// Whether there is nothing that comes before the limits.
    counts_all: bool,
    /// Whether a limit settles.
    settles: bool,
    /// Whether a limit makes requests wait.
    makes_wait: bool,
    /// Whether a limit lets requests choose its quota.
    chooses_quotas: bool,
    /// What all limits count, if they count one thing and apply to every request, each by its own quota.
    sole: Option<usize>,
}

#[derive(Debug)]
struct Planned {
    limit: Limit,
    /// What every request costs, if there is nothing else to the limit's charges.
    plain_cost: Option<u64>,
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

/// The keys of a request, each with the position of its subject, once that has been asked for; `None` is a missing one.
type Keys<'r> = SmallVec<[(usize, Option<Key<'r>>); FEW]>;

/// The limits that apply to a request, each with the place of its key.
type Applying<'p> = SmallVec<[(&'p Planned, usize); FEW]>;

type Charges<'a> = SmallVec<[Charge<'a>; FEW]>;

/// The quotas that a request has instead of those of the limits of these names. Nearly always none, and then nothing is
/// allocated.
pub(crate) type Overrides = Vec<(Name, Quota)>;

/// How a request comes in whose limits cannot simply be asked.
pub(crate) enum Entry {
    /// Its limits are asked when this has been found out.
    LookUp(LookingUp),
    /// It is not limited.
    Free,
    /// It is refused.
    Blocked,
}

/// Why the store is not asked about a request.
pub(crate) enum Unasked {
    /// No limit applies.
    NoLimit,
    /// A limit refuses requests without a key of this scope.
    Missing(Name),
}

impl Plan {
    pub(crate) fn new(policy: Policy) -> Self {
        let settles = policy.limits.iter().any(|limit| limit.terms.is_some());
        let makes_wait = policy.limits.iter().any(Limit::makes_wait);
        let chooses_quotas = policy.limits.iter().any(Limit::has_other_quotas);
        let mut subjects: Vec<Subject> = Vec::new();
        let limits: Vec<Planned> = policy
            .limits
            .into_iter()
            .map(|limit| {
                let scope = limit.extractor.scope();
                let subject = subjects.iter().position(|known| known.shared.scope() == scope).unwrap_or_else(|| {
                    subjects.push(Subject { extractor: Arc::clone(&limit.extractor), shared: Key::new(scope, &[]) });
                    subjects.len() - 1
                });
                let on_store_failure = limit.without_store(policy.on_store_failure);
                Planned { plain_cost: limit.plain_cost(), limit, subject, on_store_failure }
            })
            .collect();
        let applies_always = |planned: &Planned| planned.limit.applies_always();
        let is_sole = subjects.len() == 1 && !chooses_quotas && limits.iter().all(applies_always);
        let sole = is_sole.then_some(0);
        let (lists, look_ups, instances) = (policy.lists, policy.look_ups, policy.instances);
        let counts_all = look_ups.is_empty() && lists.are_empty();
        Self { counts_all, limits, subjects, lists, look_ups, instances, settles, makes_wait, chooses_quotas, sole }
    }

    /// The limits, in the order of the policy.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().map(|planned| &planned.limit)
    }

    /// Looks a request up in the lists, and begins its look-ups.
    #[inline]
    pub(crate) fn enter(&self, head: &RequestHead<'_>) -> Option<Entry> {
        if self.counts_all { None } else { self.sort(head) }
    }

    #[inline(never)]
    fn sort(&self, head: &RequestHead<'_>) -> Option<Entry> {
        match self.lists.find(head) {
            Listed::Free => Some(Entry::Free),
            Listed::Blocked => Some(Entry::Blocked),
            Listed::No if self.look_ups.is_empty() => None,
            Listed::No => Some(Entry::LookUp(LookingUp::begin(&self.look_ups, head))),
        }
    }

    /// Whether requests that are admitted at once are done with.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.settles && !self.makes_wait && !self.chooses_quotas
    }

    /// What something makes of the keys of a request that has been decided on. They are read anew, so that requests pay
    /// for it only where it is wanted.
    pub(crate) fn each_key<T>(&self, head: &RequestHead<'_>, of: impl Fn(&Key<'_>) -> Option<T>) -> Box<[(Name, T)]> {
        let (mut keys, mut applying) = (Keys::new(), Applying::new());
        if self.read(head, &mut keys, &mut applying).is_err() {
            return Box::default();
        }
        let pair = |(planned, place): &(&Planned, usize)| Some((planned.limit.name, of(self.key(&keys[*place]))?));
        applying.iter().filter_map(pair).collect()
    }

    /// Finds the limits that apply to a request and the keys they count; otherwise the scope of the key without which a
    /// limit refuses it. Both lists are the caller's: they are too large to be handed back.
    fn read<'p, 'r>(
        &'p self,
        head: &RequestHead<'r>,
        keys: &mut Keys<'r>,
        applying: &mut Applying<'p>,
    ) -> Result<(), Name> {
        for planned in self.limits.iter().filter(|planned| planned.limit.applies(head)) {
            let Planned { limit, subject, .. } = planned;
            let place = keys.iter().position(|(known, _)| known == subject).unwrap_or_else(|| {
                keys.push((*subject, self.subjects[*subject].extractor.extract(head)));
                keys.len() - 1
            });
            if keys[place].1.is_none() {
                match limit.without_key() {
                    MissingKey::Skip => continue,
                    MissingKey::Refuse => return Err(limit.extractor.scope()),
                    MissingKey::Share => {}
                }
            }
            applying.push((planned, place));
        }
        Ok(())
    }

    /// What has to be kept of a request's charges: those that are settled, or all of them where the request may have to
    /// wait, for its turn may have to be given back.
    #[inline]
    pub(crate) fn ledger(&self, charges: &[Charge<'_>]) -> Option<Ledger> {
        if !self.makes_wait && !self.settles {
            return None;
        }
        self.kept(charges)
    }

    fn kept(&self, charges: &[Charge<'_>]) -> Option<Ledger> {
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

    /// What is counted: the key of the request, or the one of all requests that have none.
    fn key<'k, 'r: 'k>(&'k self, (subject, key): &'k (usize, Option<Key<'r>>)) -> &'k Key<'k> {
        key.as_ref().unwrap_or(&self.subjects[*subject].shared)
    }
}

/// The quotas that a request has instead of its limits' own.
fn other_quotas(applying: &Applying<'_>, head: &RequestHead<'_>) -> Overrides {
    let mut overrides = Overrides::new();
    for (planned, _) in applying {
        if let Some(quota) = planned.limit.other_quota(head) {
            overrides.push((planned.limit.name, quota));
        }
    }
    overrides
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
