//! A document to a policy that finds a request's limits through an index.
//!
//! | part | what it does |
//! |---|---|
//! | `keys`, `key_source` | extractors of keys; the keys that patterns, tiers and overrides are compared with |
//! | `limits` | a limit with its options |
//! | `conditions` | the condition of one match |
//! | `matches`, `literals` | the index: which of many matches a request meets |
//! | `key_patterns`, `networks` | the first of many patterns that matches a key; the networks that contain an address |
//! | `tiers` | the tier of a request's key, and the quotas that it has instead |
//! | `compiled` | the index, the tiers and the lists of a document, and the policy made of them |

mod compiled;
mod conditions;
mod key_patterns;
mod key_source;
mod keys;
mod limits;
mod literals;
mod matches;
mod networks;
mod tiers;

pub(crate) use self::compiled::{Compiled, compile};
pub(crate) use self::key_patterns::KeyPatterns;
pub(crate) use self::keys::client_ip;
pub use self::networks::Networks;
pub use self::tiers::Tier;
