//! Remembers the last refusals of this instance, to answer complaints.
//!
//! `log` is a ring that requests write. `refusal` has the form for readers.

mod log;
mod refusal;

pub(crate) use self::log::RefusalLog;
pub use self::refusal::{Refusal, RefusalFilter, RefusalList};
