//! The atomics of the counters, which the tests replace with loom's.

pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
