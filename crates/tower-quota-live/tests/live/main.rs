//! Tests rules that change while requests run, with real files, real Redis servers, and instances
//! in several processes.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod blocks;
mod ends;
mod file;
mod fixture;
mod fleet;
mod following;
mod log;
mod overrides;
mod processes;
#[cfg(feature = "calendar")]
mod quotas;
mod redis;
mod refusals;
mod servers;
mod start;
mod stores;
mod top;
mod went_back;
