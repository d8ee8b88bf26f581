//! Tests connecting and closing a store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

#[path = "../common/mod.rs"]
mod common;

mod closing;
#[cfg(feature = "tls")]
mod clusters;
#[cfg(feature = "credentials")]
mod credentials;
mod lazily;
#[cfg(feature = "pool")]
mod pool;
mod refusing;
mod rights;
#[cfg(feature = "tls")]
mod tls;
mod urls;
