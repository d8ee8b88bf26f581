//! Finds the first matching assignment of a request.

use std::sync::Arc;

use indexmap::IndexMap;
use tower_quota::RequestHead;

use super::Quotas;

use crate::code_parts::TierOf;
use crate::compile::conditions::Context;
use crate::compile::key_patterns::KeyPatterns;
use crate::compile::matches::Matches;
use crate::document::Match;
use crate::text::{NameText, TierText};

#[derive(Default)]
pub(super) struct Assignments {
    /// The assignments that ask for a key only.
    patterns: KeyPatterns,
    /// The position and the tier of the assignment of each pattern.
    of_patterns: Vec<(usize, usize)>,
    /// All other assignments, by their position.
    matches: Option<Matches<(usize, Assigned)>>,
}

#[derive(Clone)]
enum Assigned {
    Tier(usize),
    Code(Arc<TierOf>),
}

impl Assignments {
    pub(super) fn new(context: &Context<'_>, tiers: &IndexMap<NameText, Quotas>) -> Self {
        let mut compiled = Self::default();
        let mut others: Vec<(Match, (usize, Assigned))> = Vec::new();
        for (position, rule) in context.document.assign.iter().enumerate() {
            // The check has refused unknown names.
            let assigned = match &rule.tier {
                TierText::Named(name) => tiers.get_index_of(name).map(Assigned::Tier),
                TierText::Code(name) => {
                    let given = context.code.tiers.get(name.as_str());
                    given.cloned().map(Assigned::Code)
                }
            };
            let Some(assigned) = assigned else { continue };
            if let (Some(keys), None, Assigned::Tier(tier)) = (&rule.key, &rule.when, &assigned) {
                for pattern in &keys.0 {
                    compiled.patterns.push(pattern);
                    compiled.of_patterns.push((position, *tier));
                }
                continue;
            }
            let any = [Match::default()];
            for matching in rule.when.as_ref().map_or(&any[..], |when| &when.0) {
                let mut matching = matching.clone();
                if rule.key.is_some() {
                    matching.key.clone_from(&rule.key);
                }
                others.push((matching, (position, assigned.clone())));
            }
        }
        if !others.is_empty() {
            let (matches, values): (Vec<Match>, Vec<_>) = others.into_iter().unzip();
            compiled.matches = Some(Matches::new(matches.iter().zip(values), context));
        }
        compiled
    }

    /// Returns the position and the tier of the first matching assignment.
    pub(super) fn first(
        &self,
        key: Option<&[u8]>,
        head: Option<&RequestHead<'_>>,
        tiers: &IndexMap<NameText, Quotas>,
    ) -> Option<(usize, usize)> {
        let pattern = key.and_then(|key| self.patterns.first(key));
        let mut first = pattern.and_then(|pattern| self.of_patterns.get(pattern).copied());
        let (Some(matches), Some(head)) = (&self.matches, head) else {
            return first;
        };
        // A second header must not obtain a tier, so an unsure condition does not hold.
        matches.find(&head.in_doubt(false), |(position, assigned)| {
            if first.is_some_and(|(earlier, _)| earlier <= *position) {
                return;
            }
            let tier = match assigned {
                Assigned::Tier(tier) => Some(*tier),
                Assigned::Code(tier_of) => {
                    tier_of(head).and_then(|tier| tiers.get_index_of(tier.as_str()))
                }
            };
            if let Some(tier) = tier {
                first = Some((*position, tier));
            }
        });
        first
    }
}
