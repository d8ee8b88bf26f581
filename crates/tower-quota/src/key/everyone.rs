//! Counting everybody together.

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

/// Counts nobody in particular: one counter for all requests. What a limit does that is not told otherwise.
#[must_use]
pub const fn everyone() -> Everyone {
    Everyone(())
}

/// The extractor of [`everyone`].
#[derive(Clone, Copy, Debug)]
pub struct Everyone(());

impl KeyExtractor for Everyone {
    fn scope(&self) -> Name {
        Key::EVERYONE.scope()
    }

    fn extract<'r>(&self, _: &RequestHead<'r>) -> Option<Key<'r>> {
        Some(Key::EVERYONE)
    }
}
