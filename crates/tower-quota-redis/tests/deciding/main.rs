//! Tests decisions of a store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

#[path = "../common/mod.rs"]
mod common;

mod batching;
mod cluster;
mod conversions;
mod decisions;
mod differential;
mod holds;
mod pairs;
mod refusals;
mod reshard;
mod spread;
mod stored;
