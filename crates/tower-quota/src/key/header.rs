use std::borrow::Cow;

use http::header::{COOKIE, HeaderName, HeaderValue};
use percent_encoding::percent_decode;
use tower_quota_core::Name;

use crate::head::RequestHead;

pub(super) type SentValue<'r> = Option<Cow<'r, [u8]>>;

pub(super) fn lines<'r>(
    head: &RequestHead<'r>,
    name: &HeaderName,
) -> impl Iterator<Item = &'r [u8]> + use<'r> {
    let lines = head.headers().get_all(name).iter();
    lines.map(|line| line.as_bytes().trim_ascii())
}

pub(super) fn cookies<'r>(
    head: &RequestHead<'r>,
    name: Name,
) -> impl Iterator<Item = Cow<'r, [u8]>> + use<'r> {
    let lines = head.headers().get_all(COOKIE).iter();
    lines
        .map(HeaderValue::as_bytes)
        .flat_map(|line| line.split(|byte| *byte == b';'))
        .filter_map(move |pair| cookie_value(pair, name))
}

fn cookie_value(pair: &[u8], name: Name) -> Option<Cow<'_, [u8]>> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let sent = pair[..equals].trim_ascii();
    let value = pair[equals + 1..].trim_ascii();
    let quoted = value.strip_prefix(b"\"");
    let value = quoted
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(value);
    percent_decode(sent)
        .eq(name.as_str().bytes())
        .then(|| percent_decode(value).into())
}
