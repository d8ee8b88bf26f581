//! Events and spans of decisions, for logs and traces.

mod event;
#[cfg(not(feature = "trace"))]
#[path = "no_span.rs"]
mod span;
#[cfg(feature = "trace")]
mod span;

pub(crate) use self::event::trace;
pub(crate) use self::span::{SpanSettings, StoreSpan};
