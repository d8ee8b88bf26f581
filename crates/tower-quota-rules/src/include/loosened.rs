//! Finds the parts of a document that would loosen the limits of the document that it includes.

use std::collections::HashSet;

use crate::document::{Document, Grants};
use crate::problem::DocumentPlace;
use crate::text::{NameText, TierText};

/// A part that is no part of a document with an include.
pub(super) struct Loosened {
    pub(super) place: DocumentPlace,
    pub(super) text: String,
    pub(super) fix: &'static str,
}

impl Loosened {
    pub(super) fn all(included: &Document, own: &Document) -> Vec<Self> {
        let names = included.all_limits().map(|rule| rule.name.as_str());
        let both = Both {
            limits: names.collect(),
            included,
            own,
        };
        let mut found = Vec::new();
        both.lists(&mut found);
        both.limits(&mut found);
        both.tiers(&mut found);
        both.clients(&mut found);
        found
    }
}

struct Both<'d> {
    /// The names of the included limits.
    limits: HashSet<&'d str>,
    included: &'d Document,
    own: &'d Document,
}

impl Both<'_> {
    fn lists(&self, found: &mut Vec<Loosened>) {
        for (field, list) in self.own.lists() {
            if field != "block" && !list.is_empty() {
                found.push(Loosened {
                    place: DocumentPlace::of(field),
                    text: "these requests would pass the included limits too".into(),
                    fix: "write them into the included document, or \"unless\" into your limits",
                });
            }
        }
    }

    fn limits(&self, found: &mut Vec<Loosened>) {
        let own = self.own.limits.iter().enumerate().map(|(position, rule)| {
            let place = DocumentPlace::of("limits").index(position);
            (place, rule)
        });
        let of_routes = self.own.routes.iter().enumerate();
        let of_routes = of_routes.flat_map(|(route, rule)| {
            let place = DocumentPlace::of("routes").index(route).field("limits");
            let limits = rule.limits.iter().enumerate();
            limits.map(move |(position, rule)| (place.index(position), rule))
        });
        for (place, rule) in own.chain(of_routes) {
            if self.limits.contains(rule.name.as_str()) {
                found.push(Loosened {
                    place: place.field("name"),
                    text: format!("the included document has a limit {:?}", rule.name.as_str()),
                    fix: "give yours another name",
                });
            }
        }
    }

    fn tiers(&self, found: &mut Vec<Loosened>) {
        for (name, tier) in &self.own.tiers {
            let place = DocumentPlace::of("tiers").field(name.as_str());
            self.grants(&place, &tier.limits, found);
            if tier.extends.is_some() && self.included.tiers.contains_key(name.as_str()) {
                found.push(Loosened {
                    place: place.field("extends"),
                    text: format!("the included document has the tier {:?}", name.as_str()),
                    fix: "remove \"extends\", or give your tier another name",
                });
            }
        }
    }

    fn clients(&self, found: &mut Vec<Loosened>) {
        for (key, rule) in &self.own.overrides {
            let place = DocumentPlace::of("overrides").field(key);
            self.grants(&place, &rule.limits, found);
            if self.included.overrides.contains_key(key) {
                found.push(Loosened {
                    place: place.clone(),
                    text: "the included document has an override of this key".into(),
                    fix: "keep one of the two",
                });
            }
            if let Some(tier) = &rule.tier {
                self.given(place.field("tier"), tier, found);
            }
        }
        for (position, rule) in self.own.assign.iter().enumerate() {
            if let TierText::Named(tier) = &rule.tier {
                let place = DocumentPlace::of("assign").index(position).field("tier");
                self.given(place, tier, found);
            }
        }
    }

    fn grants(&self, place: &DocumentPlace, grants: &Grants, found: &mut Vec<Loosened>) {
        for (name, _) in grants {
            let name = name.as_str();
            if self.limits.contains(name) {
                found.push(Loosened {
                    place: place.field("limits").field(name),
                    text: format!("only the included document gives other quotas of {name:?}"),
                    fix: "remove it",
                });
            }
        }
    }

    /// Finds a client with a tier that has other quotas of included limits.
    fn given(&self, place: DocumentPlace, tier: &NameText, found: &mut Vec<Loosened>) {
        let (mut next, mut seen) = (Some(tier.as_str()), HashSet::new());
        while let Some(name) = next.filter(|name| seen.insert(*name)) {
            let rules = [&self.included.tiers, &self.own.tiers].map(|tiers| tiers.get(name));
            let rules = rules.into_iter().flatten();
            next = None;
            for rule in rules {
                let mut names = rule.limits.into_iter().map(|(name, _)| name.as_str());
                if let Some(limit) = names.find(|name| self.limits.contains(name)) {
                    found.push(Loosened {
                        place,
                        text: format!(
                            "the tier {:?} has another quota of {limit:?}, which the included document gives to its own clients",
                            tier.as_str()
                        ),
                        fix: "assign another tier",
                    });
                    return;
                }
                next = next.or(rule.extends.as_ref().map(|name| name.as_str()));
            }
        }
    }
}
