//! Compiles a document to a policy that finds limits through an index.
//!
//! | part | contents |
//! |---|---|
//! | `keys`, `key_source` | extractors of keys, and the keys compared with patterns |
//! | `limits` | a limit with its options |
//! | `conditions` | the condition of a match |
//! | `matches`, `literals` | the index of matches |
//! | `key_patterns`, `networks` | indexes of key patterns and networks |
//! | `tiers` | tiers and overrides |
//! | `compiled` | the policy of a document |

mod compiled;
mod conditions;
mod key_patterns;
mod key_source;
mod keys;
mod limits;
mod literals;
mod matches;
mod tiers;

pub(crate) use self::compiled::{Compiled, compile};
pub(crate) use self::key_patterns::KeyPatterns;
pub(crate) use self::keys::client_ip;
pub(crate) use self::tiers::{Granted, TierSource};
