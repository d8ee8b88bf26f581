//! Load shedding for tower services.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cause;
mod clock;
mod error;
mod gate;
mod handle;
mod layer;
mod limit;
#[cfg(feature = "metrics")]
pub mod metrics;
mod priority;
mod settings;
mod shed;
mod sync;

pub use self::cause::Cause;
pub use self::error::ConfigError;
pub use self::handle::{ShedHandle, ShedStats};
pub use self::layer::{ResponseBody, ResponseFuture, ShedLayer, ShedService};
pub use self::limit::LimitSettings;
pub use self::priority::Priority;
pub use self::shed::Shed;
