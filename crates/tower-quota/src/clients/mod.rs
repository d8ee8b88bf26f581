//! Keeps the blocked clients, and the clients with the most requests.

mod blocks;
#[cfg(feature = "top")]
mod top;

pub(crate) use self::blocks::Blocks;
#[cfg(feature = "top")]
pub(crate) use self::top::{BusyClients, RefusedClients};
#[cfg(feature = "top")]
pub use self::top::{TopClient, TopWindow};
