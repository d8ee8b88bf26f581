use core::error::Error;

use crate::name::Name;

/// Receives the failures of a [`HoldKeeper`](super::HoldKeeper).
pub trait HoldEvents: Send + Sync + 'static {
    /// A renewal or a release has failed. The keeper repeats the call.
    fn failed(&self, error: &(dyn Error + 'static)) {
        let _ = error;
    }

    /// The store has lost units in use. Returns whether the keeper takes them again.
    fn lost(&self, limit: Name) -> bool {
        let _ = limit;
        true
    }

    /// The longest hold has ended, so the units return while the work runs.
    fn outlived(&self, limit: Name) {
        let _ = limit;
    }

    /// Too many releases wait for the store, so the keeper has dropped the oldest.
    fn dropped(&self) {}
}

impl HoldEvents for () {}
