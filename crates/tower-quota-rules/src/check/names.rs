use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Checker, all_limits};
use crate::problem::{DocumentPlace, Problem};

impl Checker<'_> {
    pub(super) fn names(&mut self) {
        // Leave repeated names of a partial document to the reader, which sees all limits.
        if self.known.is_partial {
            return;
        }
        let mut first = HashMap::new();
        for limit in all_limits(self.document) {
            match first.entry(limit.rule.name.as_str()) {
                Entry::Vacant(entry) => {
                    entry.insert(limit);
                }
                Entry::Occupied(entry) => {
                    let place = limit.place().field("name");
                    let first = entry.get().place();
                    self.problems
                        .push(repeated_limit(place, entry.key(), &first));
                }
            }
        }
    }
}

pub(crate) fn repeated_limit(place: DocumentPlace, name: &str, first: &DocumentPlace) -> Problem {
    let text = format_args!(
        "the limit {name:?} is there already, at {first}: give each a name of its own"
    );
    Problem::error(place, text)
}
