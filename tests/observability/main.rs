//! Tests of the recorded metrics, and of the files of `ops/` with the programs that read the files.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod alerts;
mod bounds;
mod clients;
mod dashboard;
mod outcomes;
mod page;
mod prometheus;
mod recorder;
mod rules;
mod service;
