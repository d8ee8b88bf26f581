//! Keys from the credentials in `Authorization` (RFC 9110, section 11.6.2).

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::{AUTHORIZATION, HeaderValue};
use tower_quota_core::Name;

use super::single::{SentValue, key_of, single_value};
use crate::head::RequestHead;

/// Accepts every variant of base64 that an application may accept, so that one value has one key.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Counts by the token in `Authorization: Bearer` (RFC 6750).
///
/// The token is not verified: limit by address too, or each made-up token gets a new counter. The key is missing
/// without the header and with another scheme. Requests with conflicting lines share one counter, as with
/// [`header`](super::header()). If tokens are renewed, count by a claim in them: see `jwt_claim` with the feature
/// `jwt`.
#[must_use]
#[doc(alias = "access token")]
pub const fn bearer() -> BearerKey {
    BearerKey {
        scope: Name::new("bearer token"),
    }
}

/// The extractor of [`bearer`].
#[derive(Clone, Copy, Debug)]
pub struct BearerKey {
    scope: Name,
}

impl BearerKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        credentials(head, "Bearer").map(|token| Some(token?.into()))
    }
}

/// Counts by the user's name in `Authorization: Basic` (RFC 7617).
///
/// The password is ignored. Requests that name a user are counted as that user. This protects an account from guessed
/// passwords, but other clients can use up its quota: limit by address too.
///
/// The key is missing without the header, with another scheme, if the credentials cannot be decoded, and if the name is
/// empty. Requests that name different users share one counter, as with [`header`](super::header()).
#[must_use]
#[doc(alias = "login")]
pub const fn basic_user() -> BasicUserKey {
    BasicUserKey {
        scope: Name::new("basic user"),
    }
}

/// The extractor of [`basic_user`].
#[derive(Clone, Copy, Debug)]
pub struct BasicUserKey {
    scope: Name,
}

impl BasicUserKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        credentials(head, "Basic").map(|credentials| Some(user(credentials?)?.into()))
    }
}

fn user(credentials: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = LENIENT.decode(credentials).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded.truncate(colon);
    Some(decoded)
}

/// Returns the credentials of each line for a scheme; `None` for lines of other schemes.
fn credentials<'r>(
    head: &RequestHead<'r>,
    scheme: &'static str,
) -> impl Iterator<Item = Option<&'r [u8]>> + use<'r> {
    head.headers()
        .get_all(AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes)
        .map(move |line| {
            let (name, credentials) = line.trim_ascii().split_at_checked(scheme.len())?;
            let matches =
                name.eq_ignore_ascii_case(scheme.as_bytes()) && credentials.first() == Some(&b' ');
            matches.then(|| credentials.trim_ascii())
        })
}

single_value!(BearerKey BasicUserKey);

key_of! {
    [] BearerKey;
    [] BasicUserKey;
}
