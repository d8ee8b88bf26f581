//! The command of tower-quota.
#![forbid(unsafe_code)]

mod log;

fn main() {}
