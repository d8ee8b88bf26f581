//! Writes events of decisions, and spans of store calls.

mod event;
mod key_seed;
mod span;

pub(crate) use self::event::Tracer;
pub(crate) use self::key_seed::KeySeed;
pub(crate) use self::span::CallSpan;
