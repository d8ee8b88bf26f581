//! Helpers of the tests of all pairs, for the crates that include this folder by its path.

// Each crate uses a part of the helpers.
#![allow(dead_code)]

pub(crate) mod crossings;
pub(crate) mod server;
