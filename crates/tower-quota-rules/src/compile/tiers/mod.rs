//! Compiles tiers and overrides, which are the quotas of some clients.
//!
//! The tier of a request is the tier of its override, the extension [`Tier`] from your code, or the tier
//! of the first matching assignment. A tier includes the quotas of extended tiers.

mod assignments;
mod overrides;

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use tower_quota::{Key, Quota, RequestHead};

use self::assignments::Assignments;
use self::overrides::Overrides;
use super::conditions::Context;
use super::key_source::KeySource;
use crate::document::Grants;
use crate::explain::QuotaSource;
use crate::problem::{DocumentPlace, Problems};
use crate::text::NameText;
use crate::tier::Tier;

pub(crate) struct Tiers {
    default_key: Arc<KeySource>,
    tiers: IndexMap<NameText, Quotas>,
    assignments: Assignments,
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
    pub(crate) tier: Option<(&'a str, TierSource)>,
    own: &'a [(u32, Option<Quota>)],
    of_tier: &'a [(u32, Option<Quota>)],
}

/// The part of the rules that has given a client its tier.
#[derive(Clone, Copy)]
pub(crate) enum TierSource {
    Override,
    /// The extension [`Tier`] from your code.
    Extension,
    /// The assignment at this position.
    Assignment(usize),
}

impl Granted<'_> {
    /// Returns the quota in place of the limit's own quota, if any. An absent inner quota is
    /// unlimited.
    pub(crate) fn quota(&self, limit: u32) -> Option<Option<Quota>> {
        find(self.own, limit).or_else(|| find(self.of_tier, limit))
    }

    /// Returns what gives the quota of the limit.
    pub(crate) fn source(&self, limit: u32) -> QuotaSource {
        match self.tier {
            _ if find(self.own, limit).is_some() => QuotaSource::Override,
            Some((tier, _)) if find(self.of_tier, limit).is_some() => {
                QuotaSource::Tier(tier.to_owned())
            }
            _ => QuotaSource::Limit,
        }
    }
}

fn find(quotas: &[(u32, Option<Quota>)], limit: u32) -> Option<Option<Quota>> {
    let at = quotas.binary_search_by_key(&limit, |(limit, _)| *limit);
    Some(quotas.get(at.ok()?)?.1)
}

impl Tiers {
    pub(crate) fn new(
        context: &Context<'_>,
        limits: &HashMap<Box<str>, u32>,
        problems: &mut Problems,
    ) -> Self {
        let document = context.document;
        let mut tiers = IndexMap::new();
        for name in document.tiers.keys() {
            // The nearest quota comes first. The check has refused cycles.
            let extended = document.extended(name.as_str());
            let quotas = quotas(extended.map(|tier| &tier.limits), limits);
            tiers.insert(name.clone(), quotas);
        }
        let mut compiled = Self {
            default_key: Arc::clone(&context.default_key),
            assignments: Assignments::new(context, &tiers),
            tiers,
            overrides: Overrides::default(),
        };
        for (text, rule) in &document.overrides {
            let place = || DocumentPlace::of("overrides").field(text);
            let Some((part, key)) = compiled.default_key.parse(text) else {
                let error =
                    "it is not a key that the key of `defaults` can have: write one, or remove it";
                problems.error(place(), error);
                continue;
            };
            let tier = rule.tier.as_ref();
            let grant = Grant {
                tier: tier.and_then(|tier| compiled.tiers.get_index_of(tier)),
                quotas: quotas([&rule.limits], limits),
            };
            if !compiled.overrides.insert(part, key.as_bytes(), grant) {
                let error = format_args!(
                    "{text:?} is the key of an earlier override too, since clients are counted by their networks: keep one of the two"
                );
                problems.error(place(), error);
            }
        }
        compiled
    }

    pub(crate) fn of(&self, head: &RequestHead<'_>) -> Granted<'_> {
        if self.is_empty() {
            return Granted::default();
        }
        let key = self.default_key.find(head);
        self.granted(key.as_ref().map(|(part, key)| (*part, key)), Some(head))
    }

    /// Returns the tier and the quotas of a client by its key alone, without a tier from a request or from your code.
    pub(crate) fn of_key(&self, key: &Key<'_>) -> Granted<'_> {
        let part = self.default_key.part_of(key.scope());
        self.granted(part.map(|part| (part, key)), None)
    }

    /// Returns whether patterns are compared with the text of a key.
    pub(crate) fn compares(&self, key: &Key<'_>) -> bool {
        let part = self.default_key.part_of(key.scope());
        part.is_some_and(|part| self.default_key.is_text(part))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tiers.is_empty() && self.overrides.is_empty()
    }

    fn granted(
        &self,
        key: Option<(usize, &Key<'_>)>,
        head: Option<&RequestHead<'_>>,
    ) -> Granted<'_> {
        let key = key.filter(|(_, key)| !key.as_bytes().is_empty());
        let own = key.and_then(|(part, key)| {
            let part = (!self.default_key.is_text(part)).then_some(part);
            self.overrides.find(part, key.as_bytes())
        });
        let tier = match own.and_then(|own| own.tier) {
            Some(tier) => Some((tier, TierSource::Override)),
            None => self.attached(head).or_else(|| {
                let text = key.filter(|(part, _)| self.default_key.is_text(*part));
                let text = text.map(|(_, key)| key.as_bytes());
                let (position, tier) = self.assignments.first(text, head, &self.tiers)?;
                Some((tier, TierSource::Assignment(position)))
            }),
        };
        let found = tier.and_then(|(tier, source)| Some((self.tiers.get_index(tier)?, source)));
        Granted {
            tier: found.map(|((name, _), source)| (name.as_str(), source)),
            own: own.map_or(&[], |own| &own.quotas),
            of_tier: found.map_or(&[], |((_, quotas), _)| quotas),
        }
    }

    fn attached(&self, head: Option<&RequestHead<'_>>) -> Option<(usize, TierSource)> {
        let tier = head?.extensions().get::<Tier>()?;
        let position = self.tiers.get_index_of(tier.as_str())?;
        Some((position, TierSource::Extension))
    }
}

fn quotas<'g>(
    grants: impl IntoIterator<Item = &'g Grants>,
    limits: &HashMap<Box<str>, u32>,
) -> Quotas {
    let named = grants.into_iter().flat_map(|grants| grants.iter());
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
