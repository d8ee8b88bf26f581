//! Writes events and spans of decisions.

mod event;
mod span;

pub(crate) use self::event::trace;
pub(crate) use self::span::{SpanSettings, record_decision, record_duration, record_failure};
