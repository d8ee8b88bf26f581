//! Writes events of decisions, and spans of store calls.

mod event;
mod span;

pub(crate) use self::event::Tracer;
pub(crate) use self::span::{CallSpan, SpanSettings};
