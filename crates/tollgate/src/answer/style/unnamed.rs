//! The quotas of drafts 4 to 7, which have no names: `10;w=1, 1000;w=3600`.

use http::header::{HeaderMap, HeaderValue};

use super::super::seconds::whole_seconds;
use super::super::structured::push_integer;
use super::names::RATE_LIMIT_POLICY;
use super::policies::{Entry, separate};

/// Renders such a list. A client finds its policy by the quota, so no two may have the same (draft 6, section 2.1): of
/// those that do the one with the longest window stays, which is the strictest.
pub(super) fn render(entries: &[Entry<'_>]) -> Vec<u8> {
    let window = |entry: &Entry<'_>| whole_seconds(entry.quota.horizon()).max(1);
    let mut out = Vec::with_capacity(48);
    for (i, entry) in entries.iter().enumerate() {
        let rivals = entries.iter().enumerate().filter(|(_, rival)| rival.quota.capacity() == entry.quota.capacity());
        // Of two that are the same in both, the first.
        let stays =
            rivals.max_by_key(|(j, rival)| (window(rival), core::cmp::Reverse(*j))).is_some_and(|(j, _)| i == j);
        if stays {
            separate(&mut out);
            push_integer(&mut out, entry.quota.capacity());
            out.extend_from_slice(b";w=");
            push_integer(&mut out, window(entry));
        }
    }
    out
}

/// Adds quotas to those of an inner limiter. To names, which another draft has written, they cannot be added.
pub(super) fn append(headers: &mut HeaderMap, policy: HeaderValue) {
    let digit = |line: &HeaderValue| line.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if headers.get(RATE_LIMIT_POLICY).is_none_or(digit) {
        headers.append(RATE_LIMIT_POLICY, policy);
    }
}
