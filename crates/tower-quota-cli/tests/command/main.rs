//! Tests of the command as users run it: the binary, its output, its exit code.

mod command;
mod offline;
mod service;
mod services;
mod simulate;
mod terminal;
