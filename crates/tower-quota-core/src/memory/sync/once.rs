//! A `OnceLock` for loom, which has none of its own.

use loom::sync::atomic::{AtomicBool, Ordering};

/// The standard library's holds the value; whether a thread sees it already is up to a flag of loom's, which is read and
/// written in the same orders as the standard library's own. There is no waiting: callers set a value under a lock.
pub(in crate::memory) struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(in crate::memory) fn new() -> Self {
        Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(in crate::memory) fn get(&self) -> Option<&T> {
        if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    pub(in crate::memory) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    pub(in crate::memory) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(value);
        self.is_set.store(true, Ordering::Release);
        value
    }
}
