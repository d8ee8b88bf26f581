//! The primitives of the limit. The test of all interleavings replaces this module.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
