//! Parts that code gives, and features of the crate.

use std::collections::HashMap;

use super::{Checker, all_limits};
use crate::document::{KeyRule, Many, Match};
use crate::problem::{Place, nearest};
use crate::text::{CostText, KeyText, NameText, SettleText};

impl<'d> Checker<'d> {
    pub(super) fn code(&mut self) {
        let document = self.document;
        if let Some(key) = &document.defaults.key {
            self.key(&Place::of("defaults").field("key"), key);
        }
        for limit in all_limits(document) {
            let (rule, place) = (limit.rule, limit.place());
            if let Some(key) = &rule.key {
                self.key(&place.field("key"), key);
            }
            if let Some(CostText::Code(name)) = &rule.cost {
                self.part(place.field("cost"), "cost", name, &self.parts.costs);
            }
            if let Some(SettleText::Code(name)) = &rule.settle {
                self.part(
                    place.field("settle"),
                    "rule of settling",
                    name,
                    &self.parts.rules,
                );
            }
            for (field, matches) in [("when", &rule.when), ("unless", &rule.unless)] {
                self.matches(&place.field(field), matches.as_ref());
            }
        }
        for (index, route) in document.routes.iter().enumerate() {
            self.matching(
                &Place::of("routes").index(index).field("match"),
                &route.matching,
            );
        }
        for (field, list) in [
            ("skip", &document.skip),
            ("allow", &document.allow),
            ("block", &document.block),
        ] {
            for (index, matching) in list.iter().enumerate() {
                self.matching(&Place::of(field).index(index), matching);
            }
        }
    }

    fn key(&mut self, place: &Place, key: &'d KeyRule) {
        match key {
            KeyRule::One(KeyText::Code(name)) => {
                self.part(place.clone(), "key", name, &self.parts.keys)
            }
            KeyRule::One(_) => {}
            KeyRule::First(keys) => keys
                .iter()
                .enumerate()
                .for_each(|(index, key)| self.key(&place.index(index), key)),
            KeyRule::All(keys) => {
                keys.iter()
                    .enumerate()
                    .for_each(|(index, key)| self.key(&place.field("all").index(index), key));
            }
        }
    }

    fn matches(&mut self, place: &Place, matches: Option<&'d Many<Match>>) {
        let all = matches.into_iter().flat_map(|matches| &matches.0);
        all.enumerate()
            .for_each(|(index, matching)| self.matching(&place.index(index), matching));
    }

    fn matching(&mut self, place: &Place, matching: &'d Match) {
        if matching.route.is_some() && !cfg!(feature = "axum") {
            let text = "matched routes are axum's: build the service with the feature `axum`, or use \"path\"";
            self.error(place.field("route"), text);
        }
        for (index, name) in matching.code.iter().flat_map(|names| &names.0).enumerate() {
            self.part(
                place.field("code").index(index),
                "condition",
                name,
                &self.parts.conditions,
            );
        }
        self.matches(&place.field("not"), matching.not.as_ref());
    }

    fn part<T>(&mut self, place: Place, what: &str, name: &NameText, parts: &HashMap<String, T>) {
        if parts.contains_key(name.as_str()) {
            return;
        }
        let name = name.as_str();
        let fix = match nearest(name, parts.keys().map(String::as_str)) {
            Some(near) => format!("write \"code {near}\", if that is meant"),
            None => "give it by `CodeParts`, or name another".into(),
        };
        self.error(place, format_args!("code gives no {what} {name:?}: {fix}"));
    }
}
