//! Names of limits: each once, and none stored under the number of another.

use std::collections::HashMap;

use super::{Checker, PlacedLimit, all_limits};
use crate::problem::{Place, Problem};

impl<'d> Checker<'d> {
    pub(super) fn names(&mut self) {
        let mut numbers: HashMap<u32, PlacedLimit<'d>> = HashMap::new();
        for limit in all_limits(self.document) {
            let name = limit.rule.name.as_str();
            for number in stored_numbers(&limit) {
                let Some(first) = numbers.get(&number) else {
                    numbers.insert(number, limit);
                    continue;
                };
                let place = limit.place().field("name");
                if first.rule.name != limit.rule.name {
                    let other = first.rule.name.as_str();
                    let text = format!(
                        "the names {name:?} and {other:?} are stored under the same number: rename one"
                    );
                    self.error(place, text);
                } else if !core::ptr::eq(first.rule, limit.rule) {
                    if !self.known.is_partial {
                        self.problems
                            .push(repeated_limit(place, name, &first.place()));
                    }
                    break;
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

/// Returns the numbers under which the counters of a limit are stored.
fn stored_numbers(limit: &PlacedLimit<'_>) -> impl Iterator<Item = u32> + use<> {
    // Not by `Name`, which would keep the names of invalid documents for ever.
    let [name, strikes] = numbers_of(limit.rule.name.as_str());
    core::iter::once(name).chain(limit.rule.penalty.is_some().then_some(strikes))
}

fn numbers_of(name: &str) -> [u32; 2] {
    let fnv1a = |hash: u32, bytes: &[u8]| {
        bytes.iter().fold(hash, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        })
    };
    let number = fnv1a(0x811c_9dc5, name.as_bytes());
    [number, fnv1a(number, b" penalty")]
}

#[cfg(test)]
mod tests {
    use tower_quota::Name;

    use super::numbers_of;

    #[test]
    fn numbers_are_those_of_names() {
        const LOGIN: Name = Name::new("login");
        assert_eq!(numbers_of("login"), [LOGIN.id(), LOGIN.strikes_id()]);
    }
}
