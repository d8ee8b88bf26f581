//! Keys from the credentials in `Authorization` (RFC 9110, section 11.6.2).

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::AUTHORIZATION;

use super::header::lines;
use super::place::Place;
use super::value::{SentValue, ValueKey};
use crate::head::RequestHead;

/// Accepts every variant of base64 that an application may accept, so that one value has one key.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Counts by the token in `Authorization: Bearer` (RFC 6750), without verifying the token.
///
/// Each made-up token gets a new counter: limit by address too. If your tokens are renewed, count by a claim in them, see
/// `jwt_claim` with the feature `jwt`.
#[doc(alias = "access token")]
pub fn bearer() -> ValueKey {
    ValueKey::of(Place::Bearer)
}

/// Counts by the user's name in `Authorization: Basic` (RFC 7617), whatever the password.
///
/// The limit protects an account from guessed passwords. Other clients can use up the account's quota: limit by address
/// too. The key is missing if the credentials are unreadable or the name is empty.
#[doc(alias = "login")]
pub fn basic_user() -> ValueKey {
    ValueKey::of(Place::BasicUser)
}

pub(super) fn user<'r>(credentials: &[u8]) -> SentValue<'r> {
    let mut decoded = LENIENT.decode(credentials).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded.truncate(colon);
    Some(decoded.into())
}

/// Returns the credentials of each line for a scheme; `None` for lines of other schemes.
pub(super) fn credentials<'r>(
    head: &RequestHead<'r>,
    scheme: &'static str,
) -> impl Iterator<Item = Option<&'r [u8]>> + use<'r> {
    lines(head, &AUTHORIZATION).map(move |line| {
        let (name, credentials) = line.split_at_checked(scheme.len())?;
        let matches =
            name.eq_ignore_ascii_case(scheme.as_bytes()) && credentials.first() == Some(&b' ');
        matches.then(|| credentials.trim_ascii())
    })
}
