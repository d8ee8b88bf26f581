//! The limit finds itself: hours of traffic in virtual time, next to fixed limits and to the algorithms of the field.

#![allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "figures of tests, not counters"
)]

#[path = "../../src/gate/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "the layer uses more")]
#[path = "../../src/gate/count.rs"]
mod count;
mod field;
mod limit;
mod peers;
mod properties;
mod rule;
mod service;
mod steady;
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}
mod troubles;

use peers::Fixed;
use service::{Outcome, Scene, run};

/// Returns the better of some fixed limits, of which each answers with a 99th percentile below `most` milliseconds.
fn best_fixed(scene: impl Fn() -> Scene, from: usize, to: usize, most: f64) -> f64 {
    let goodput = |outcome: Outcome| {
        let is_quick = outcome.p99(from, to) <= most;
        is_quick.then(|| outcome.goodput(from, to))
    };
    [12, 16, 20, 24, 32, 48, 64, 96]
        .into_iter()
        .filter_map(|limit| goodput(run(&scene(), &mut Fixed(limit))))
        .fold(0.0, f64::max)
}
