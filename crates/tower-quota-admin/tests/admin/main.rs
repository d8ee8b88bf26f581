//! Tests the admin API over real sockets.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod answers;
mod auth;
mod blocks;
mod clients;
mod code_policy;
mod complaints;
mod documents;
mod errors;
mod explain;
mod fields;
mod health;
mod hidden_keys;
mod openapi;
mod overrides;
mod page;
mod server;
mod shedding;
