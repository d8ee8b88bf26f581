//! The document: plain data, as it is written in YAML or JSON.
//!
//! One type a file. Fields are public, so that code can build a document; texts are valid by construction, all else is
//! checked by [`Rules::new`](crate::Rules::new).

mod assign;
mod client_ip;
mod defaults;
mod expected;
mod grant;
mod header_map;
mod key_rule;
mod limit;
mod many;
mod matching;
mod path_match;
mod penalty;
mod root;
mod route;
mod sample;
mod tier;

pub use self::assign::AssignRule;
pub use self::client_ip::ClientIpRule;
pub use self::defaults::{Defaults, MissingRule, StoreFailureRule};
pub use self::expected::{Expected, OutcomeText};
pub use self::grant::{Grant, Grants};
pub use self::header_map::HeaderMatches;
pub use self::key_rule::KeyRule;
pub use self::limit::LimitRule;
pub use self::many::Many;
pub use self::matching::Match;
pub use self::path_match::PathMatch;
pub use self::penalty::{PenaltyBlock, PenaltyRule};
pub use self::root::Document;
pub use self::route::RouteRule;
pub use self::sample::{Sample, SampleRequest};
pub use self::tier::{OverrideRule, TierRule};

/// Returns whether a flag is not set, so that it is not printed.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_unset(flag: &bool) -> bool {
    !*flag
}
