use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::AUTHORIZATION;

use super::header::{SentValue, lines};
use crate::head::RequestHead;

/// Decodes every base64 variant, so that a value has one key whatever your application accepts.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn user<'r>(credentials: &[u8]) -> SentValue<'r> {
    let mut decoded = LENIENT.decode(credentials).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded.truncate(colon);
    Some(decoded.into())
}

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
