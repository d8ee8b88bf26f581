//! The document as plain data.
//!
//! Fields are public for documents built in your code. Text types are always valid, and
//! [`Rules::new`](crate::Rules::new) checks the rest.

mod assign;
mod client_ip;
mod defaults;
mod expected;
mod grant;
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
