//! Runs `simulate`, which replays an access log through rules.
//!
//! `read` reads the log. A `replay` decides requests like a service. It is the layer over a memory
//! store, with a `clock` that shows the time of the log, around a `service` that sends the logged
//! responses. The `tally` counts decisions, and `headers` the headers that requests lack. `report`
//! shows the counts.

mod clock;
mod command;
mod headers;
mod outcome;
mod peak;
mod read;
mod replay;
mod report;
mod service;
mod tally;

pub(crate) use self::command::{SimulateArguments, run as command};
