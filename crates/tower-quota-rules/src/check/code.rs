//! Checks the parts of a document that come from your code.

use std::collections::HashMap;

use super::{Checker, all_limits};
use crate::document::KeyRule;
use crate::problem::{DocumentPlace, nearest};
use crate::text::{CostText, KeyText, NameText, SettleText};

impl<'d> Checker<'d> {
    pub(super) fn code(&mut self) {
        let document = self.document;
        if let Some(key) = &document.defaults.key {
            self.key(&DocumentPlace::of("defaults").field("key"), key);
        }
        for limit in all_limits(document) {
            let (rule, place) = (limit.rule, limit.place());
            if let Some(key) = &rule.key {
                self.key(&place.field("key"), key);
            }
            if let Some(degraded) = &rule.when_degraded
                && let Some(KeyText::Code(name)) = &degraded.key
            {
                let place = place.field("when_degraded");
                self.part(place, "key", name, &self.parts.keys);
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
        }
    }

    fn key(&mut self, place: &DocumentPlace, key: &'d KeyRule) {
        let (place, keys) = match key {
            KeyRule::One(KeyText::Code(name)) => {
                return self.part(place.clone(), "key", name, &self.parts.keys);
            }
            KeyRule::One(_) => return,
            KeyRule::First(keys) => (place.clone(), keys),
            KeyRule::All { all } => (place.field("all"), all),
        };
        for (index, key) in keys.iter().enumerate() {
            self.key(&place.index(index), key);
        }
    }

    pub(super) fn part<T>(
        &mut self,
        place: DocumentPlace,
        what: &str,
        name: &NameText,
        parts: &HashMap<String, T>,
    ) {
        if parts.contains_key(name.as_str()) {
            return;
        }
        let name = name.as_str();
        let fix = match nearest(name, parts.keys().map(String::as_str)) {
            Some(near) => format!("write \"code {near}\", if that is meant"),
            None => {
                let option = match what {
                    "rule of settling" => "settle",
                    what => what,
                };
                format!(
                    "give it by `CodeParts` (in the command, `--code {option}={name}`), or name another"
                )
            }
        };
        self.error(place, format_args!("code gives no {what} {name:?}: {fix}"));
    }
}
