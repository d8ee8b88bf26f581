//! Tests faults on real servers, with the wait of requests, the admitted units, and the recovery.
//! Each test prints a row of `docs/reference/faults.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

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
