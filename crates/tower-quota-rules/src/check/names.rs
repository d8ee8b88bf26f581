//! Names of limits: each once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Checker, all_limits};
use crate::problem::{Place, Problem};

impl Checker<'_> {
    pub(super) fn names(&mut self) {
        // The reader then reports them, since it sees all limits.
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

/// Makes the problem of a limit that has the name of an earlier one.
pub(crate) fn repeated_limit(place: Place, name: &str, first: &Place) -> Problem {
    let text = format_args!(
        "the limit {name:?} is there already, at {first}: give each a name of its own"
    );
    Problem::error(place, text)
}
