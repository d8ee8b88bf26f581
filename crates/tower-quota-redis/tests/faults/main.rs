//! Faults on real servers: how long a request waits, what is admitted, and how soon decisions are made again. Each test
//! prints its row of `docs/reference/faults.md`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod groups;
mod lag;
mod load;
mod network;
mod overload;

mod rig;
mod server;
mod server_count;
mod skew;
mod survivors;
mod trials;
