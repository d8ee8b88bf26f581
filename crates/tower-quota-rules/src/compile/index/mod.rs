//! The index of rules: which of many conditions a request meets, without asking them one after the other.

mod globs;
mod hosts;
mod matches;
mod nested;
mod networks;
mod paths;
mod trie;

pub(crate) use self::globs::Globs;
pub(crate) use self::matches::Matches;
pub(crate) use self::nested::Nested;
pub(crate) use self::networks::Range;
