//! Mistakes in the configuration: each is logged once and counted, and turned off it is silent. Innocent apps log nothing.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod addresses;
mod fixture;
mod innocent;
mod limits;
mod log;
mod page;
mod policies;
mod stores;
