//! Tests of the command as users run it: the binary, its output, its exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod command;
mod offline;
mod service;
mod services;
mod simulate;
mod terminal;
