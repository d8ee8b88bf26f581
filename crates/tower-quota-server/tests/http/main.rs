//! Tests the HTTP doors over real connections, with forged fields, failing stores, and limits that change.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod auth;
mod bounds;
mod check;
mod forged;
mod json;
mod nginx;
mod openapi;
mod outages;
mod paths;
mod reservations;
mod server;
