//! Counting by the user of Basic authentication.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::authorization::credentials;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("basic user");

/// Reads every spelling that some application might: each of them is the same user.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Counts by the user's name in `Authorization: Basic` (RFC 7617). The password has no part in it, and nobody checks it
/// here: whoever names a user is counted as that user, which is what guards an account against guessing, and lets
/// others use up its quota. Limit by address too.
///
/// It is missing without the field, with another scheme, when the credentials cannot be read, and when the name is
/// empty. Two lines that differ name nobody, as with [`header`](super::header).
#[must_use]
pub const fn basic_user() -> BasicUser {
    BasicUser(())
}

/// The extractor of [`basic_user`].
#[derive(Clone, Copy, Debug)]
pub struct BasicUser(());

impl KeyExtractor for BasicUser {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        credentials(head, "Basic").and_then(user).into_key(SCOPE)
    }
}

fn user(credentials: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = LENIENT.decode(credentials).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded.truncate(colon);
    Some(decoded)
}
