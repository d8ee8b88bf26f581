//! Tiers and single keys: the quotas that some clients have instead of the limits' own.
//!
//! A request's tier is that of its key's override, or the extension [`Tier`] that code attached, or that of the first
//! assignment with a pattern that matches its key. The quotas of a tier include those of the tiers that it extends.

mod grants;
mod overrides;
mod tier;

use std::collections::HashMap;
use std::sync::Arc;

use tower_quota::{Key, Name, RequestHead};

pub(crate) use self::grants::Granted;
use self::grants::{Quotas, TierQuota};
use self::overrides::Overrides;
pub use self::tier::Tier;
use super::key_patterns::KeyPatterns;
use super::key_source::KeySource;
use super::unknown::unknown_tier;
use crate::document::{Document, Grants};
use crate::problem::{Place, Problem, Problems};
use crate::text::NameText;

/// The tiers, assignments and overrides of a document.
#[derive(Debug)]
pub(crate) struct Tiers {
    default_key: Arc<KeySource>,
    quotas: Quotas,
    tiers: Vec<TierGrants>,
    by_name: HashMap<Box<str>, u32>,
    /// The patterns of the assignments, in order.
    patterns: KeyPatterns,
    /// The tier of each pattern.
    assigned: Vec<u32>,
    overrides: Overrides,
}

/// A tier, with the quotas of those that it extends.
#[derive(Debug)]
struct TierGrants {
    name: Name,
    grants: Box<[TierQuota]>,
}

impl Tiers {
    /// Compiles the tiers of a document, given the positions of its limits by name.
    pub(crate) fn new(
        document: &Document,
        limits: &HashMap<&str, u32>,
        default_key: &Arc<KeySource>,
        problems: &mut Problems,
    ) -> Self {
        let mut quotas = Quotas::default();
        let by_name = document
            .tiers
            .keys()
            .zip(0..)
            .map(|(name, tier)| (name.as_str().into(), tier))
            .collect();
        let mut tiers = Vec::with_capacity(document.tiers.len());
        for name in document.tiers.keys() {
            let grants = inherited(document, name, limits, &mut quotas, problems);
            tiers.push(TierGrants {
                name: name.into(),
                grants,
            });
        }
        let mut compiled = Self {
            default_key: Arc::clone(default_key),
            quotas,
            tiers,
            by_name,
            patterns: KeyPatterns::default(),
            assigned: Vec::new(),
            overrides: Overrides::default(),
        };
        compiled.assign(document, problems);
        compiled.override_keys(document, limits, problems);
        compiled
    }

    fn assign(&mut self, document: &Document, problems: &mut Problems) {
        for (at, rule) in document.assign.iter().enumerate() {
            let Some(tier) = self.tier_named(rule.tier.as_str()) else {
                problems.push(unknown_tier(
                    Place::of("assign").index(at).field("tier"),
                    rule.tier.as_str(),
                ));
                continue;
            };
            for pattern in &rule.key.0 {
                self.patterns.push(pattern);
                self.assigned.push(tier);
            }
        }
    }

    fn override_keys(
        &mut self,
        document: &Document,
        limits: &HashMap<&str, u32>,
        problems: &mut Problems,
    ) {
        let mut grants = Vec::new();
        for (text, rule) in &document.overrides {
            let place = || Place::of("overrides").field(text);
            let Some((part, key)) = self.default_key.parse(text) else {
                problems.push(Problem::error(
                    place(),
                    "it is not a key that the key of `defaults` can have: write one, or remove it",
                ));
                continue;
            };
            let tier = match &rule.tier {
                None => None,
                Some(name) => match self.tier_named(name.as_str()) {
                    Some(tier) => Some(tier),
                    None => {
                        problems.push(unknown_tier(place().field("tier"), name.as_str()));
                        continue;
                    }
                },
            };
            grants.clear();
            add(
                &mut grants,
                &rule.limits,
                limits,
                &mut self.quotas,
                &place,
                problems,
            );
            if !self.overrides.insert(part, key.as_bytes(), tier, &grants) {
                problems.push(Problem::error(
                    place(),
                    format_args!(
                        "{text:?} is the key of an earlier override too, since clients are counted by their networks: keep one of the two"
                    ),
                ));
            }
        }
        self.overrides.finish();
        self.quotas.finish();
    }

    fn tier_named(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Returns the tier and the quotas of a request's client.
    #[inline]
    pub(crate) fn of(&self, head: &RequestHead<'_>) -> Granted<'_> {
        if self.is_empty() {
            Granted::none(&self.quotas)
        } else {
            self.find(head)
        }
    }

    /// Returns the tier and the quotas of a client of which only the key is known.
    ///
    /// A tier that code attaches to requests is not.
    pub(crate) fn of_key(&self, key: &Key<'_>) -> Granted<'_> {
        let part = self.default_key.part_of(key.scope());
        self.granted(part.map(|part| (part, key)), || None)
    }

    /// Returns whether all clients have the limits' own quotas.
    pub(crate) fn is_empty(&self) -> bool {
        self.tiers.is_empty() && self.overrides.is_empty()
    }

    #[inline(never)]
    fn find(&self, head: &RequestHead<'_>) -> Granted<'_> {
        let key = self.default_key.find(head);
        self.granted(key.as_ref().map(|(part, key)| (*part, key)), || {
            head.extensions().get::<Tier>()
        })
    }

    /// Returns the tier and the quotas of a key that a part found, and of the tier that code attached.
    #[inline]
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
        let (own_tier, own_grants) = own.unwrap_or_default();
        let by_code = || self.tier_named(attached()?.as_str());
        let by_pattern = || {
            let (_, key) = key.filter(|(part, _)| self.default_key.is_text(*part))?;
            let first = self.patterns.first(key.as_bytes())?;
            self.assigned.get(first).copied()
        };
        let tier = own_tier.or_else(by_code).or_else(by_pattern);
        let tier = tier.and_then(|tier| self.tiers.get(usize::try_from(tier).ok()?));
        Granted::new(
            &self.quotas,
            tier.map(|tier| tier.name),
            own_grants,
            tier.map_or(&[], |tier| &tier.grants),
        )
    }
}

/// Returns the quotas of a tier and of those that it extends, the nearest first.
fn inherited(
    document: &Document,
    name: &NameText,
    limits: &HashMap<&str, u32>,
    quotas: &mut Quotas,
    problems: &mut Problems,
) -> Box<[TierQuota]> {
    let mut grants: Vec<TierQuota> = Vec::new();
    let mut next = Some(name);
    let mut seen: Vec<&NameText> = Vec::new();
    while let Some(name) = next {
        let place = || Place::of("tiers").field(name.as_str());
        let Some(tier) = document.tiers.get(name.as_str()) else {
            let of = seen.last().map_or(name, |of| *of);
            problems.push(unknown_tier(
                Place::of("tiers").field(of.as_str()).field("extends"),
                name.as_str(),
            ));
            break;
        };
        if seen.contains(&name) {
            problems.push(Problem::error(
                place().field("extends"),
                format_args!(
                    "the tier {:?} extends itself: remove it from one",
                    name.as_str()
                ),
            ));
            break;
        }
        seen.push(name);
        add(&mut grants, &tier.limits, limits, quotas, &place, problems);
        next = tier.extends.as_ref();
    }
    grants.into()
}

/// Adds quotas for limits that have none yet, sorted by limit.
fn add(
    grants: &mut Vec<TierQuota>,
    added: &Grants,
    limits: &HashMap<&str, u32>,
    quotas: &mut Quotas,
    place: &dyn Fn() -> Place,
    problems: &mut Problems,
) {
    for (name, grant) in added {
        let Some(limit) = limits.get(name.as_str()).copied() else {
            let name = name.as_str();
            let unknown = format_args!("there is no limit {name:?}: add it, or correct the name");
            problems.push(Problem::error(place().field("limits").field(name), unknown));
            continue;
        };
        if let Err(at) = grants.binary_search_by_key(&limit, |grant| grant.limit) {
            grants.insert(
                at,
                TierQuota {
                    limit,
                    quota: grant.quota().map(|quota| quotas.number(*quota)),
                },
            );
        }
    }
}
