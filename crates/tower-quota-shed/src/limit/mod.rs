//! The limit of requests in progress, found from completed requests.
//!
//! While the limit binds, it alternates between two levels, the limit and a lower one. If the lower level answers nearly as
//! many requests a second, the places above it only held a queue, and the limit falls. Otherwise the limit rises. Both levels
//! are measured within the same second, so a service that has become slow or fast, a share of failures or a mix of
//! requests moves both measurements alike. No latency of the past is compared with the present.
//!
//! * [`adaptive`] has the atomics that requests share.
//! * [`search`] is the pure step from one window of completed requests to the next level.
//! * [`window`] counts the requests that complete within a window.

mod adaptive;
mod sample;
mod search;
mod settings;
mod sync;
mod window;

pub(crate) use self::adaptive::Limit;
pub(crate) use self::sample::{Kind, Sample};
pub use self::settings::LimitSettings;
