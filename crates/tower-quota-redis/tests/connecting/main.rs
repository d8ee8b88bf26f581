//! Connecting a store, and closing it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "../common/mod.rs"]
mod common;

mod closing;
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
