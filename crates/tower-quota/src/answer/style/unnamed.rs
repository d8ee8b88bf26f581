//! The quotas of drafts 4 to 7, which have no names: `10;w=1, 1000;w=3600`.

use core::cmp::Reverse;

use http::header::{HeaderMap, HeaderValue};

use super::super::seconds::whole_seconds;
use super::super::structured::push_integer;
use super::names::RATE_LIMIT_POLICY;
use super::policies::{Dialect, Entry};

/// How such a list is written.
pub(super) const UNNAMED: Dialect = Dialect { member: push_policy, tells };

/// `20;w=2`
fn push_policy(out: &mut Vec<u8>, entry: &Entry<'_>) {
    push_integer(out, entry.quota.capacity());
    out.extend_from_slice(b";w=");
    push_integer(out, window(entry));
}

/// A client finds its policy by the quota, so no two may have the same (draft 6, section 2.1): of those that do the one
/// with the longest window stays, which is the strictest; of two that are the same in both, the first.
fn tells(entries: &[Entry<'_>], position: usize) -> bool {
    let Some(entry) = entries.get(position) else { return false };
    let rank = |(at, rival): (usize, &Entry<'_>)| (window(rival), Reverse(at));
    let rivals = entries.iter().enumerate().filter(|(_, rival)| rival.quota.capacity() == entry.quota.capacity());
    rivals.map(rank).max() == Some(rank((position, entry)))
}

fn window(entry: &Entry<'_>) -> u64 {
    whole_seconds(entry.quota.horizon()).max(1)
}

/// Adds quotas to those of an inner limiter. To names, which another draft has written, they cannot be added.
pub(super) fn append(headers: &mut HeaderMap, policy: HeaderValue) {
    let digit = |line: &HeaderValue| line.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if headers.get(&RATE_LIMIT_POLICY).is_none_or(digit) {
        headers.append(&RATE_LIMIT_POLICY, policy);
    }
}
