//! What a process remembers of single clients: blocks, and the latest refusals.

mod blocks;
mod recent;

pub(crate) use self::blocks::Blocks;
pub(crate) use self::recent::RecentRefusals;
pub use self::recent::RefusedClient;
