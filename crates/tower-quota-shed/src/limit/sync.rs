//! The primitives of the limit. The test of all interleavings replaces this module.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The number of stripes of the counts. The test of all interleavings has fewer, because each stripe multiplies the orders.
pub(crate) const STRIPES: usize = 8;
