//! Metrics as a recorder gets them, and the files of `ops/` with the programs that read them.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod alerts;
mod bounds;
mod dashboard;
mod outcomes;
mod page;
mod prometheus;
mod recorder;
mod rules;
mod service;
