//! Tests Envoy's service with cases in files, random calls, failing stores, and a real connection.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod cases;
mod collisions;
mod connections;
mod counts;
mod folders;
mod leases;
mod outages;
mod properties;
mod requests;
mod support;
mod xds;
