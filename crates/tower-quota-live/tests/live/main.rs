//! Rules that change while requests run: real files, real Redis servers, instances in this process and in others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod blocks;
mod file;
mod fixture;
mod fleet;
mod following;
mod log;
mod overrides;
mod processes;
mod redis;
mod servers;
mod shadows;
mod start;
mod stores;
mod top;
