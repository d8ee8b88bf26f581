//! Tests the running server: ports, health, signals, certificates, bounds and metrics.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod bounds;
mod certificates;
mod checks;
mod endings;
mod flags;
mod health;
mod metrics;
mod outages;
mod ports;
mod several;
mod support;
