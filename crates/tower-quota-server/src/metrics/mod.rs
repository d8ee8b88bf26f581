//! Metrics of the server, by the names of envoyproxy/ratelimit where they mean the same.

mod calls;
mod recorder;
mod table;

use ::metrics::{counter, gauge};

pub(crate) use self::calls::CountedCalls;
pub(crate) use self::recorder::{install, keep_up, render};
use self::table::{CERTIFICATES, CLOSED, CONFIG_ERRORS, CONFIG_LOADS, CONNECTIONS};

/// Counts a connection that the server has ended or not taken.
pub(crate) fn closed(port: &'static str, reason: &'static str) {
    counter!(CLOSED, "port" => port, "reason" => reason).increment(1);
}

/// Sets the number of connections.
pub(crate) fn connections(port: &'static str, connections: usize) {
    #[expect(clippy::cast_precision_loss, reason = "a port has few connections")]
    gauge!(CONNECTIONS, "port" => port).set(connections as f64);
}

/// Counts limits that are in force, or a configuration that cannot be used.
pub(crate) fn config(is_good: bool) {
    let name = if is_good { CONFIG_LOADS } else { CONFIG_ERRORS };
    counter!(name).increment(1);
}

/// Counts certificates that were read again.
pub(crate) fn certificates(port: &'static str, is_good: bool) {
    let result = if is_good { "applied" } else { "rejected" };
    counter!(CERTIFICATES, "port" => port, "result" => result).increment(1);
}
