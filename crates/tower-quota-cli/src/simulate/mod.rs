//! `simulate`: an access log through rules, in the time of the log.
//!
//! `read` reads the log once. Each line is a request, which each `replay` decides as a service would: the layer of
//! tower-quota over a memory store, on a `clock` that shows the log's time, around a `service` that answers as the log
//! says. The `tally` counts the decisions. `report` shows the counts. `suggest` looks for a quota.

mod clock;
mod command;
mod lock;
mod outcome;
mod peak;
mod read;
mod replay;
mod report;
mod series;
mod service;
mod share;
mod suggest;
mod tally;

pub(crate) use self::command::{SimulateArguments, run as command};
