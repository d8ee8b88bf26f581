//! Tests quotas, keys, decisions and limiters through the public interface.

#[cfg(feature = "calendar")]
mod calendar;
mod conformance;
mod differential;
#[cfg(feature = "tokio")]
mod holds;
#[cfg(feature = "tokio")]
mod kept_holds;
#[cfg(feature = "tokio")]
mod kept_holds_in_any_order;
#[cfg(feature = "tokio")]
mod kept_holds_in_outages;
mod key;
#[cfg(feature = "tokio")]
mod limiter;
#[cfg(feature = "calendar")]
mod pairs;
mod quota;
