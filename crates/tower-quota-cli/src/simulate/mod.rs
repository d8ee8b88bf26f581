//! `simulate`: an access log through rules, in the time of the log.
//!
//! `run` reads the log once. Each line is a `request`, which each `replay` decides as a service would: the layer of
//! tower-quota over a memory store, on a `clock` that shows the log's time, around a `service` that answers as the log
//! says. A decision is noted in the `tally`. `report` shows the counts. `suggest` looks for a quota.

mod clock;
mod command;
mod outcome;
mod peak;
mod progress;
mod replay;
mod report;
mod request;
mod run;
mod series;
mod service;
mod share;
mod suggest;
mod tally;

pub(crate) use self::command::{SimulateArguments, run as command};
