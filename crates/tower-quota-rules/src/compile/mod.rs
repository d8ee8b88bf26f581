//! A document to a policy that finds a request's limits through an index.
//!
//! | part | what it does |
//! |---|---|
//! | `keys`, `key_source` | extractors of keys; the keys that patterns, tiers and overrides are compared with |
//! | `limits` | a limit with its options |
//! | `conditions` | the condition of one match |
//! | `index` | which of many matches a request meets: tries, hashes, nested sets, one expression of many |
//! | `packed_map` | a map of many keys, packed into one block of bytes |
//! | `tiers` | the tier of a request's key, and the quotas that it has instead |
//! | `compiled` | the index, the tiers and the lists of a document, and the policy made of them |

mod compiled;
mod conditions;
mod index;
mod key_source;
mod keys;
mod limits;
mod packed_map;
mod tiers;
mod unknown;

pub(crate) use self::compiled::{Compiled, compile};
pub(crate) use self::index::{Nested, Range};
pub(crate) use self::keys::client_ip;
pub use self::tiers::Tier;
