//! Counting by bearer token.

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::authorization::credentials;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("bearer token");

/// Counts by the token in `Authorization: Bearer` (RFC 6750). Nobody checks here whether it is one that was given out:
/// limit by address too, or made-up tokens get a fresh counter each.
///
/// It is missing without the field and with another scheme. Two lines that differ name nobody, as with
/// [`header`](super::header). Users whose tokens are renewed are better counted by what is in them: see `jwt_claim`,
/// with the feature `jwt`.
#[must_use]
pub const fn bearer() -> Bearer {
    Bearer(())
}

/// The extractor of [`bearer`].
#[derive(Clone, Copy, Debug)]
pub struct Bearer(());

impl KeyExtractor for Bearer {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        credentials(head, "Bearer").into_key(SCOPE)
    }
}
