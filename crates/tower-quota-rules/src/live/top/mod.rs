//! The clients with most requests on all instances, in sorted sets of Redis.
//!
//! ```text
//! quota:top:{NAME}:{LIST}:{WINDOW}:{INSTANCE}  sorted set: client (JSON) by its requests; expires
//! quota:top:{NAME}:{LIST}:{WINDOW}:sum         sorted set: the sums of all instances at the last reading; expires
//! quota:top:{NAME}:instances                   sorted set: instance by the time of its last figures; expires
//! ```
//!
//! `shared` writes and reads the sorted sets. `share` connects them to live rules.

mod merged;
mod share;
mod shared;

pub use self::merged::{MergedClient, MergedTop};
pub use self::shared::SharedTop;
