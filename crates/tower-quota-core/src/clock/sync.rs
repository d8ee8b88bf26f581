//! Atomics and the lock of the clock. With `--cfg loom` they are loom's, and `models` goes through every order in which
//! threads can take them.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(super) use std::sync::Mutex;

#[cfg(loom)]
pub(super) use loom::sync::Mutex;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering, fence};
