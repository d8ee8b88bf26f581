//! Tests of the command as users run the binary, with the output and the exit code.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod command;
mod complaints;
mod connecting;
#[cfg(unix)]
mod contexts;
mod offline;
mod service;
mod services;
mod simulate;
mod target;
mod terminal;
mod versions;
