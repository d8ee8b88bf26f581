//! Builds the charges of a request for the store.

use core::ptr;
use core::time::Duration;

use smallvec::SmallVec;
use tower_quota_core::{Charge, Key, Name, Outcome, Quota};

use super::choose::Chosen;
use super::explained::ExplainedLimit;
use super::plan::Plan;
use super::planned::PlannedLimit;
use crate::head::RequestHead;
use crate::key::{MAX_SENT_KEYS, MissingPart, is_conflict};
use crate::limit::{Limit, MissingKey};
use crate::request::Waiter;
use crate::response::{Reason, Report};

const INLINE_LIMITS: usize = 4;

/// The limits that apply to a request, with keys, quotas and costs.
///
/// A request runs your closures only once, even if the store fails afterwards.
pub(crate) struct RequestCharges<'p, 'r> {
    plan: &'p Plan,
    keys: SmallVec<[ReadKey<'r>; INLINE_LIMITS]>,
    parts: SmallVec<[PlannedCharge<'p>; INLINE_LIMITS]>,
    overrides: Vec<(Name, Quota)>,
    /// The reason to refuse the request if the limits admit it.
    pub(crate) refusal: Option<Reason<'static>>,
}

pub(crate) type Charges<'a> = SmallVec<[Charge<'a>; INLINE_LIMITS]>;

/// Removes the wait of charges without a place in the queue, so that a refusal is free.
///
/// If a limit counts refusals or strikes, the waits stay. The layer then refuses, and refunds the turn.
#[cold]
fn bound_waits(charges: &mut Charges<'_>, plan: &Plan, has_room: impl Fn(&Waiter<'_>) -> bool) {
    let may_wait = |charge: &Charge<'_>| charge.max_wait_micros() > 0;
    let costs = |charge: &Charge<'_>| {
        charge.counts_refusals() || may_wait(charge) && charge.penalised_by().is_some()
    };
    if charges.iter().any(costs) {
        return;
    }
    for charge in charges {
        if may_wait(charge) && !has_room(&plan.waiter(charge.name(), charge.key())) {
            *charge = charge.max_wait(Duration::ZERO);
        }
    }
}

struct ReadKey<'r> {
    position: usize,
    found: Option<Key<'r>>,
}

struct PlannedCharge<'p> {
    planned: &'p PlannedLimit,
    key: usize,
    units: u64,
}

impl<'p, 'r> RequestCharges<'p, 'r> {
    /// Makes an empty value, to be [filled](Self::read) in place, because the value is large.
    #[inline]
    pub(crate) fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            keys: SmallVec::new(),
            parts: SmallVec::new(),
            overrides: Vec::new(),
            refusal: None,
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, head: &RequestHead<'r>) {
        let plan = self.plan;
        for planned in plan.listed() {
            self.read_limit(planned, None, false, head);
        }
        if !plan.choices.is_empty() {
            self.read_chosen(head);
        }
        if self.parts.len() > Charge::MOST {
            self.drop_shadows();
        }
        if self.refusal.is_some() {
            self.leave_out_shared();
        }
    }

    /// Drops shadows, because the store would fail for the other limits too.
    #[cold]
    fn drop_shadows(&mut self) {
        self.parts.retain(|part| !part.planned.limit.is_dry_run());
        if self.parts.len() > Charge::MOST {
            self.refusal = Some(Reason::TooManyLimits);
            self.parts.clear();
        }
    }

    /// Leaves out the charges that a refused request must not take.
    ///
    /// Clients without a key could use up shared counters, and a hold would have to be released.
    #[cold]
    fn leave_out_shared(&mut self) {
        let parts = core::mem::take(&mut self.parts);
        let is_own = |part: &PlannedCharge<'p>| {
            !self.key(part).as_bytes().is_empty() && !self.charge(part).is_hold()
        };
        self.parts = parts.into_iter().filter(is_own).collect();
    }

    #[inline(always)]
    fn read_limit(
        &mut self,
        planned: &'p PlannedLimit,
        quota: Option<Quota>,
        is_left_out: bool,
        head: &RequestHead<'r>,
    ) {
        let (limit, is_simple) = (&planned.limit, planned.simple.is_some());
        if !is_simple && !limit.applies(head) {
            return;
        }
        let key = self.read_key(planned.key, head);
        let found = self.keys[key].found.as_ref();
        let has_key = found.is_some_and(|key| !key.as_bytes().is_empty());
        if !has_key
            && !self.plan.keys[planned.key].is_everyone
            && !self.applies_without_key(limit, key, is_left_out, head)
        {
            return;
        }
        let mut other = match is_simple && quota.is_none() {
            true => None,
            false => limit.other_quota(quota, head),
        };
        if let Some(overrides) = &self.plan.overrides {
            let found = self.keys[key].found.as_ref();
            let key = found.unwrap_or(&self.plan.keys[planned.key].shared);
            let usual = other.as_ref().unwrap_or(&limit.quota);
            match overrides(limit.name, key, Some(usual).filter(|_| !is_left_out)) {
                Some(quota) => other = limit.other_quota(Some(quota), head),
                None if is_left_out => return,
                None => {}
            }
        }
        if let Some(quota) = other {
            self.overrides.push((limit.name, quota));
        }
        let units = planned
            .simple
            .as_ref()
            .map_or_else(|| limit.units(head), |simple| simple.cost);
        self.parts.push(PlannedCharge {
            planned,
            key,
            units,
        });
    }

    /// Returns whether a limit applies to a request whose key may be missing or in conflict.
    ///
    /// Otherwise the limit may refuse the request.
    #[cold]
    fn applies_without_key(
        &mut self,
        limit: &Limit,
        key: usize,
        is_left_out: bool,
        head: &RequestHead<'r>,
    ) -> bool {
        let is_conflict = match &self.keys[key].found {
            Some(everyone) if !is_conflict(everyone) => return true,
            found => found.is_some(),
        };
        if is_left_out {
            return false;
        }
        let missing = || MissingPart::of(limit, is_conflict, head);
        let refusal = match limit.without_key(head) {
            Some(MissingKey::Skip) if !is_conflict => return false,
            // Count conflicting values, because a client could evade the limit by a second value.
            Some(MissingKey::Skip | MissingKey::ShareOneCounter) => return true,
            Some(MissingKey::Refuse) => Reason::MissingKey(missing()),
            Some(MissingKey::Unauthenticated) => Reason::Unauthenticated(missing()),
            None => Reason::NoPeerAddress,
        };
        self.refusal.get_or_insert(refusal);
        false
    }

    #[inline(never)]
    fn read_chosen(&mut self, head: &RequestHead<'r>) {
        let plan = self.plan;
        for choice in &plan.choices {
            let limits = plan.chosen_of(choice);
            let mut add = |position: usize, quota, is_left_out| {
                if is_left_out && plan.overrides.is_none() {
                    return;
                }
                let Some(planned) = limits.get(position) else {
                    return;
                };
                // A closure may add a limit twice, which must count once.
                if !self.parts.iter().any(|part| ptr::eq(part.planned, planned)) {
                    self.read_limit(planned, quota, is_left_out, head);
                }
            };
            // If a condition of the closure is unsure, the limit applies.
            (choice.choose)(&head.in_doubt(true), &mut Chosen { add: &mut add });
        }
    }

    /// Reads a key at most once, and returns the position in `keys`.
    #[inline]
    fn read_key(&mut self, position: usize, head: &RequestHead<'r>) -> usize {
        if let Some(known) = self.keys.iter().position(|key| key.position == position) {
            return known;
        }
        let read = self.keys.len();
        self.keys.push(ReadKey {
            position,
            found: None,
        });
        let planned = &self.plan.keys[position];
        // Assign in place, because keys are large.
        self.keys[read].found = match planned.is_everyone {
            true => Some(Key::EVERYONE),
            false => planned.extractor.extract(head),
        };
        read
    }

    #[inline]
    fn key(&self, part: &PlannedCharge<'_>) -> &Key<'_> {
        self.keys[part.key]
            .found
            .as_ref()
            .unwrap_or_else(|| &self.plan.keys[part.planned.key].shared)
    }

    /// Adds the charges to an empty list in place, because the list is large.
    #[inline]
    pub(crate) fn fill<'a>(
        &'a self,
        charges: &mut Charges<'a>,
        has_room: impl Fn(&Waiter<'_>) -> bool,
    ) {
        for part in &self.parts {
            charges.push(self.charge(part));
        }
        if self.plan.makes_wait {
            bound_waits(charges, self.plan, has_room);
        }
    }

    #[inline]
    fn charge<'a>(&'a self, part: &'a PlannedCharge<'p>) -> Charge<'a> {
        let (limit, key) = (&part.planned.limit, self.key(part));
        match &part.planned.simple {
            Some(simple) if self.other_quota(simple.name).is_none() => {
                Charge::new(simple.name, &simple.quota, key).cost(part.units)
            }
            _ => limit.charge(self.quota(limit), key, part.units),
        }
    }

    #[inline]
    pub(crate) fn quota<'a>(&'a self, limit: &'a Limit) -> &'a Quota {
        self.other_quota(limit.name).unwrap_or(&limit.quota)
    }

    #[inline]
    fn other_quota(&self, limit: Name) -> Option<&Quota> {
        self.overrides
            .iter()
            .find(|(name, _)| *name == limit)
            .map(|(_, quota)| quota)
    }

    /// Adds the quotas and costs of this request to a report.
    pub(crate) fn complete(&self, report: &mut Report) {
        if !self.overrides.is_empty() {
            report.overrides.clone_from(&self.overrides);
        }
        let decision = report.decision.as_ref();
        // Only the refusal of a request that never fits reads the costs.
        if decision.is_none_or(|decision| decision.outcome() == Outcome::Never) {
            report.oversized = self.oversized();
        }
    }

    fn oversized(&self) -> Vec<(Name, u64)> {
        let mut oversized = Vec::new();
        for part in &self.parts {
            let limit = &part.planned.limit;
            if part.units > self.quota(limit).capacity() {
                oversized.push((limit.name, part.units));
            }
        }
        oversized
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn keys(&self) -> Vec<(Name, Key<'static>)> {
        let mut keys = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            keys.push((part.planned.limit.name, self.key(part).to_static()));
        }
        keys
    }

    /// Returns whether `is_it` accepts any key of the request, including uncounted keys.
    ///
    /// Too many keys count as accepted.
    pub(crate) fn any_key(
        &self,
        head: &RequestHead<'_>,
        mut is_it: impl FnMut(Name, &Key<'_>) -> bool,
    ) -> bool {
        self.parts.iter().any(|part| {
            let limit = &part.planned.limit;
            let (mut found, mut sent) = (is_it(limit.name, self.key(part)), 0);
            limit.extractor.each_key(head, &mut |key| {
                // A block of clients without a key must not affect clients with a key.
                found = found || !key.as_bytes().is_empty() && is_it(limit.name, key);
                sent += 1;
            });
            // A client must not hide a blocked key behind many others.
            found || sent > MAX_SENT_KEYS
        })
    }

    pub(crate) fn explained(&self) -> Vec<ExplainedLimit> {
        let explained = self.parts.iter().map(|part| {
            let (limit, key) = (&part.planned.limit, self.key(part));
            ExplainedLimit {
                name: limit.name,
                quota: *self.quota(limit),
                key: key.to_static(),
                cost: part.units,
                is_shadow: limit.is_dry_run(),
                over: limit.over,
            }
        });
        explained.collect()
    }

    pub(crate) fn costs(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.units).collect()
    }

    /// Returns the limits with the scopes of their keys and the costs.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (Name, Name, u64)> {
        let parts = self.parts.iter();
        parts.map(|part| (part.planned.limit.name, self.key(part).scope(), part.units))
    }
}
