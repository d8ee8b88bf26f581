//! The `Authorization` field (RFC 9110, section 11.6.2), which extractors of credentials read.

use http::header::AUTHORIZATION;

use super::told::Told;
use crate::head::RequestHead;

/// What the request sends for a scheme, without the blanks around it. Two lines that differ are a contradiction,
/// whatever their schemes.
pub(super) fn credentials<'r>(head: &RequestHead<'r>, scheme: &str) -> Told<&'r [u8]> {
    Told::by_header(head.headers(), AUTHORIZATION).and_then(|line| {
        let (name, credentials) = line.trim_ascii().split_at_checked(scheme.len())?;
        let named = name.eq_ignore_ascii_case(scheme.as_bytes()) && credentials.first() == Some(&b' ');
        named.then(|| credentials.trim_ascii())
    })
}
