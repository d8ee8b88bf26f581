//! Compiles tiers and overrides, which are the quotas of some clients.
//!
//! The tier of a request is the tier of its override, the extension [`Tier`] from your code, or the tier
//! of the first matching assignment. A tier includes the quotas of extended tiers.

mod overrides;
mod tier;

use std::collections::HashMap;
use std::sync::Arc;

use tower_quota::{Key, Name, Quota, RequestHead};

use self::overrides::Overrides;
pub use self::tier::Tier;
use super::key_patterns::KeyPatterns;
use super::key_source::KeySource;
use crate::document::{Document, Grants};
use crate::problem::{DocumentPlace, Problem, Problems};

pub(crate) struct Tiers {
    default_key: Arc<KeySource>,
    tiers: Vec<(Name, Quotas)>,
    by_name: HashMap<Box<str>, usize>,
    patterns: KeyPatterns,
    assigned: Vec<usize>,
    overrides: Overrides,
}

#[derive(PartialEq, Eq, Hash)]
struct Grant {
    tier: Option<usize>,
    quotas: Quotas,
}

/// The quotas of a tier, sorted by the position of their limit. An absent quota is unlimited.
type Quotas = Box<[(u32, Option<Quota>)]>;

#[derive(Clone, Copy, Default)]
pub(crate) struct Granted<'a> {
    pub(crate) tier: Option<Name>,
    own: &'a [(u32, Option<Quota>)],
    of_tier: &'a [(u32, Option<Quota>)],
}

impl Granted<'_> {
    /// Returns the quota in place of the limit's own quota, if any. An absent inner quota is
    /// unlimited.
    pub(crate) fn quota(&self, limit: u32) -> Option<Option<Quota>> {
        let find = |quotas: &[(u32, Option<Quota>)]| {
            let at = quotas.binary_search_by_key(&limit, |(limit, _)| *limit);
            Some(quotas.get(at.ok()?)?.1)
        };
        find(self.own).or_else(|| find(self.of_tier))
    }
}

impl Tiers {
    pub(crate) fn new(
        document: &Document,
        limits: &HashMap<&str, u32>,
        default_key: &Arc<KeySource>,
        problems: &mut Problems,
    ) -> Self {
        let names = document.tiers.keys();
        let mut compiled = Self {
            default_key: Arc::clone(default_key),
            tiers: names
                .clone()
                .map(|name| (name.into(), inherited(document, name.as_str(), limits)))
                .collect(),
            by_name: names.map(|name| name.as_str().into()).zip(0..).collect(),
            patterns: KeyPatterns::default(),
            assigned: Vec::new(),
            overrides: Overrides::default(),
        };
        for rule in &document.assign {
            let Some(tier) = compiled.tier_named(rule.tier.as_str()) else {
                continue;
            };
            for pattern in &rule.key.0 {
                compiled.patterns.push(pattern);
                compiled.assigned.push(tier);
            }
        }
        for (text, rule) in &document.overrides {
            let place = || DocumentPlace::of("overrides").field(text);
            let Some((part, key)) = compiled.default_key.parse(text) else {
                problems.push(Problem::error(
                    place(),
                    "it is not a key that the key of `defaults` can have: write one, or remove it",
                ));
                continue;
            };
            let tier = rule.tier.as_ref();
            let grant = Grant {
                tier: tier.and_then(|tier| compiled.tier_named(tier.as_str())),
                quotas: quotas([&rule.limits], limits),
            };
            if !compiled.overrides.insert(part, key.as_bytes(), grant) {
                problems.push(Problem::error(
                    place(),
                    format_args!(
                        "{text:?} is the key of an earlier override too, since clients are counted by their networks: keep one of the two"
                    ),
                ));
            }
        }
        compiled
    }

    fn tier_named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn of(&self, head: &RequestHead<'_>) -> Granted<'_> {
        if self.is_empty() {
            return Granted::default();
        }
        let key = self.default_key.find(head);
        self.granted(key.as_ref().map(|(part, key)| (*part, key)), || {
            head.extensions().get::<Tier>()
        })
    }

    /// Returns the tier and the quotas of a client by its key alone, without a tier from your code.
    pub(crate) fn of_key(&self, key: &Key<'_>) -> Granted<'_> {
        let part = self.default_key.part_of(key.scope());
        self.granted(part.map(|part| (part, key)), || None)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tiers.is_empty() && self.overrides.is_empty()
    }

    fn granted<'t>(
        &self,
        key: Option<(usize, &Key<'_>)>,
        attached: impl FnOnce() -> Option<&'t Tier>,
    ) -> Granted<'_> {
        let key = key.filter(|(_, key)| !key.as_bytes().is_empty());
        let own = key.and_then(|(part, key)| {
            let part = (!self.default_key.is_text(part)).then_some(part);
            self.overrides.find(part, key.as_bytes())
        });
        let by_code = || self.tier_named(attached()?.as_str());
        let by_pattern = || {
            let (_, key) = key.filter(|(part, _)| self.default_key.is_text(*part))?;
            let first = self.patterns.first(key.as_bytes())?;
            self.assigned.get(first).copied()
        };
        let tier = own.and_then(|own| own.tier).or_else(by_code);
        let tier = tier
            .or_else(by_pattern)
            .and_then(|tier| self.tiers.get(tier));
        Granted {
            tier: tier.map(|(name, _)| *name),
            own: own.map_or(&[], |own| &own.quotas),
            of_tier: tier.map_or(&[], |(_, quotas)| quotas),
        }
    }
}

/// Returns the quotas of a tier and its extended tiers, the nearest first. The check has refused
/// cycles.
fn inherited(document: &Document, name: &str, limits: &HashMap<&str, u32>) -> Quotas {
    let tier = |name: &str| document.tiers.get(name);
    let extended = core::iter::successors(tier(name), |rule| tier(rule.extends.as_ref()?.as_str()));
    quotas(extended.map(|tier| &tier.limits), limits)
}

fn quotas<'g>(grants: impl IntoIterator<Item = &'g Grants>, limits: &HashMap<&str, u32>) -> Quotas {
    let named = grants.into_iter().flatten();
    let placed = named.filter_map(|(name, grant)| {
        let limit = limits.get(name.as_str())?;
        Some((*limit, grant.quota().copied()))
    });
    let mut quotas: Vec<(u32, Option<Quota>)> = placed.collect();
    // Sort with a stable algorithm, so that the nearest quota stays first.
    quotas.sort_by_key(|(limit, _)| *limit);
    quotas.dedup_by_key(|(limit, _)| *limit);
    quotas.into()
}
