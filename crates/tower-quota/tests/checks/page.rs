//! The page of mistakes names each check.
//!
//! The tests of each mistake compare the page with the logged warning.

use tower_quota::Check;

pub(crate) const PAGE: &str = include_str!("../../../../docs/reference/mistakes.md");

#[test]
fn page_has_a_row_for_each_check() {
    let checks = [
        Check::NoPeerAddress,
        Check::UntrustedProxy,
        Check::NoForwardedAddress,
        Check::UnreachableLimit,
        Check::CountedTwice,
        Check::TwoQuotas,
        Check::QuotasInTurn,
        Check::TooManyLimits,
        Check::Undecidable,
        Check::UnheldUpgrade,
        Check::UnknownLimit,
        Check::ExcessiveCost,
    ];
    for check in checks {
        assert!(
            PAGE.contains(&format!("| `Check::{check:?}` |")),
            "{check:?}"
        );
    }
}
