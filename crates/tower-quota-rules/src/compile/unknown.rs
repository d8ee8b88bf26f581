//! Problems of names that are not there.

use crate::problem::{Place, Problem};

/// Returns the problem of a code part that the program does not give.
pub(super) fn unknown_code<'n>(
    place: Place,
    name: &str,
    known: impl Iterator<Item = &'n String>,
) -> Problem {
    let mut known: Vec<&str> = known.map(String::as_str).collect();
    known.sort_unstable();
    let fix = match &known[..] {
        [] => String::from("give it by `CodeParts`, which has none of its kind"),
        known => format!("give it by `CodeParts`, which has {}", known.join(", ")),
    };
    Problem::error(
        place,
        format_args!("the program gives no part {name:?}: {fix}"),
    )
}

/// Returns the problem of a tier that is not there.
pub(super) fn unknown_tier(place: Place, name: &str) -> Problem {
    Problem::error(
        place,
        format_args!("there is no tier {name:?}: add it to `tiers`, or correct the name"),
    )
}
