//! Quotas, keys, decisions and limiters, as a user sees them.

#[cfg(feature = "calendar")]
mod calendar;
mod conformance;
mod differential;
#[cfg(feature = "tokio")]
mod holds;
mod key;
#[cfg(feature = "tokio")]
mod limiter;
mod quota;
