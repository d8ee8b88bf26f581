//! Checks the assignments of tiers.

use std::collections::HashSet;

use tower_quota::Quota;

use super::Checker;
use crate::compile::KeyPatterns;
use crate::document::{AssignRule, KeyRule, Many};
use crate::problem::DocumentPlace;
use crate::text::{HeaderText, KeyText, TierText};

impl<'d> Checker<'d> {
    pub(super) fn assignments(&mut self) {
        let document = self.document;
        let mut assigned = KeyPatterns::default();
        let mut takes_all = None;
        for (index, rule) in document.assign.iter().enumerate() {
            let place = DocumentPlace::of("assign").index(index);
            match &rule.tier {
                TierText::Named(name) => {
                    self.is_tier(|| place.field("tier"), name);
                    self.forgeable(&place, rule, name.as_str());
                }
                TierText::Code(name) => {
                    self.part(place.field("tier"), "tier", name, &self.parts.tiers);
                }
            }
            if let Some(earlier) = takes_all {
                let text = format_args!(
                    "this is never reached, since assign[{earlier}] takes every request: move it up, or remove it"
                );
                self.warning(place.clone(), text);
            }
            if rule.key.is_some() {
                self.has_patterns(&place);
            }
            self.keys_of(&place, rule, &mut assigned);
            let is_named = matches!(rule.tier, TierText::Named(_));
            if is_named && rule.key.is_none() && rule.when.is_none() {
                takes_all.get_or_insert(index);
            }
        }
    }

    fn keys_of(&mut self, place: &DocumentPlace, rule: &'d AssignRule, assigned: &mut KeyPatterns) {
        for (index, matching) in Many::of(&rule.when).iter().enumerate() {
            if rule.key.is_some() && matching.key.is_some() {
                let place = place.field("when").index(index).field("key");
                self.error(
                    place,
                    "the key is given here and next to \"when\": remove one",
                );
            }
        }
        let is_simple = rule.when.is_none() && matches!(rule.tier, TierText::Named(_));
        for (position, pattern) in Many::of(&rule.key).iter().enumerate() {
            if let Some(earlier) = assigned.covering(pattern) {
                let text = format_args!(
                    "{:?} is never reached, since {:?} before it takes the same keys: move it up, or remove it",
                    pattern.as_str(),
                    earlier.as_str()
                );
                self.warning(place.field("key").index(position), text);
            }
            if is_simple {
                assigned.push(pattern);
            }
        }
    }

    /// Warns if a client can obtain a larger quota by a header of its own.
    fn forgeable(&mut self, place: &DocumentPlace, rule: &'d AssignRule, tier: &'d str) {
        for (index, matching) in Many::of(&rule.when).iter().enumerate() {
            // Other conditions, such as the claim of a verified token, are as good as a gateway.
            if !matching.claim.is_empty() || matching.code.is_some() {
                continue;
            }
            let mut headers = matching.header.keys().map(HeaderText::as_str);
            let Some(header) = headers.find(|header| !self.is_trusted(header)) else {
                continue;
            };
            if let Some(limit) = self.larger_limit(tier) {
                let text = format_args!(
                    "any client can send {header:?} and get the tier {tier:?}, which has more of {limit:?}: if your gateway sets the \
                     header and removes it from the requests of clients, add it to \"trusted_headers\""
                );
                let place = place.field("when").index(index).field("header");
                self.warning(place.field(header), text);
            }
            return;
        }
    }

    /// Returns whether clients cannot choose a header, or become another client by it.
    fn is_trusted(&self, name: &str) -> bool {
        fn reads(key: &KeyRule, name: &str) -> bool {
            match key {
                KeyRule::One(KeyText::Value(value)) => {
                    let value = value.to_string();
                    let header = value.strip_prefix("header ");
                    header.is_some_and(|header| header.eq_ignore_ascii_case(name))
                }
                KeyRule::One(_) => false,
                KeyRule::First(keys) | KeyRule::All { all: keys } => {
                    keys.iter().any(|key| reads(key, name))
                }
            }
        }
        let mut trusted = self.document.trusted_headers.iter();
        trusted.any(|header| header.as_str().eq_ignore_ascii_case(name))
            || reads(self.document.defaults.key(), name)
    }

    /// Returns a limit that has a larger quota for a tier, or does not apply.
    fn larger_limit(&self, tier: &'d str) -> Option<&'d str> {
        let mut granted = HashSet::new();
        let document = self.document;
        let extended = document.extended(tier);
        for (name, grant) in extended.flat_map(|rule| rule.limits.iter()) {
            let name = name.as_str();
            let Some(limit) = self.limits.get(name).filter(|_| granted.insert(name)) else {
                continue;
            };
            let usual = limit.rule.quota.quota();
            if grant.quota().is_none_or(|quota| is_larger(quota, usual)) {
                return Some(name);
            }
        }
        None
    }
}

fn is_larger(quota: &Quota, usual: &Quota) -> bool {
    let rate = |quota: &Quota, other: &Quota| {
        u128::from(quota.units()).saturating_mul(other.period().as_nanos())
    };
    quota.capacity() > usual.capacity() || rate(quota, usual) > rate(usual, quota)
}
