//! Events and spans of decisions, for logs and traces.

mod event;
#[cfg(not(feature = "trace"))]
mod no_span;
#[cfg(feature = "trace")]
mod span;

pub(crate) use self::event::trace;
#[cfg(not(feature = "trace"))]
pub(crate) use self::no_span::{NoSettings as SpanSettings, NoSpan as StoreSpan};
#[cfg(feature = "trace")]
pub(crate) use self::span::{SpanSettings, StoreSpan};
