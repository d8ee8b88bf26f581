//! The clients with most requests on all instances, through Redis.
//!
//! `published` is what an instance tells the others, in bounded size. `exchange` keeps it in Redis:
//!
//! ```text
//! quota:top:{NAME}        hash: instance -> figures (JSON)
//! quota:top:{NAME}:seen   sorted set: instance -> the server's milliseconds at its last figures
//! ```
//!
//! `merge` adds the figures of several instances up, as summaries of sketches are added (Agarwal and others: Mergeable
//! Summaries, 2012). `share` connects them to live rules.

mod exchange;
mod merge;
mod published;
mod share;

pub use self::exchange::SharedTop;
pub use self::merge::{MergedClient, MergedTop};
