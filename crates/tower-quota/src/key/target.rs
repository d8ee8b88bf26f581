use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use tower_quota_core::Name;

use crate::head::RequestHead;

pub(super) fn segment<'r>(head: &RequestHead<'r>, index: usize) -> Option<&'r str> {
    head.path().strip_prefix('/')?.split('/').nth(index)
}

pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

pub(super) fn query_values<'r>(
    head: &RequestHead<'r>,
    name: Name,
) -> impl Iterator<Item = Cow<'r, [u8]>> + use<'r> {
    let query = head.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .filter(move |(sent, _)| sent == name.as_str())
        .map(|(_, value)| match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
}

pub(crate) fn host_of(authority: &[u8]) -> Cow<'_, [u8]> {
    let authority = authority.trim_ascii();
    let host = authority
        .iter()
        .rposition(|byte| *byte == b'@')
        .map_or(authority, |at| &authority[at + 1..]);
    let host = match host.iter().position(|byte| *byte == b']') {
        Some(end) => &host[..=end],
        None => host
            .iter()
            .position(|byte| *byte == b':')
            .map_or(host, |colon| &host[..colon]),
    };
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

pub(super) fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::CONNECT
        | Method::OPTIONS
        | Method::TRACE
        | Method::PATCH => method.as_str(),
        _ => "other",
    }
}
