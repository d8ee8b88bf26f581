//! Defines the texts of quotas, keys, durations and patterns.
//!
//! The types are always valid, print a text that reads as the same value, and have a JSON Schema.

mod cost;
mod degraded;
mod duration;
mod error;
mod key;
mod key_pattern;
mod macros;
mod name;
mod over;
mod pattern;
mod quota;
mod quota_reader;
mod regex;
mod settle;
mod tier;
mod words;

pub use self::cost::CostText;
pub use self::degraded::DegradedText;
pub use self::duration::DurationText;
pub use self::error::TextError;
pub use self::key::KeyText;
pub use self::key_pattern::KeyPattern;
pub(crate) use self::macros::written_as_text;
pub use self::name::NameText;
pub use self::over::OverText;
pub use self::pattern::{
    GrpcMethod, GrpcService, HeaderText, HostPattern, MethodText, Network, PathPattern,
};
pub use self::quota::QuotaText;
pub use self::regex::PathRegex;
pub use self::settle::{AbandonedText, SettleText};
pub use self::tier::TierText;
pub use self::words::WordsText;
