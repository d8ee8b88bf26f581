//! Lists the clients with most requests. Instances share the clients in sorted sets of Redis:
//!
//! ```text
//! quota:top:{NAME}:{LIST}:{WINDOW}:{INSTANCE}  sorted set: client (JSON) by its requests; expires
//! quota:top:{NAME}:{LIST}:{WINDOW}:sum         sorted set: the sums of all instances at the last reading; expires
//! quota:top:{NAME}:instances                   sorted set: instance by the time of its last figures; expires
//! ```
//!
//! `shared` writes and reads the sorted sets. `live` connects them to live rules.

mod list;
mod live;
#[cfg(feature = "redis")]
mod shared;

pub use self::list::{Counted, ListedClient, TopList};
#[cfg(feature = "redis")]
pub use self::shared::SharedTop;
