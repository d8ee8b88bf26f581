//! Counting by path, or by one segment of it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::told::Told;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("path");

/// Counts by the path, without the query and with percent signs decoded.
///
/// Every path that a client makes up gets a fresh counter: prefer `route`, with the feature `axum`, or an
/// [`all`](super::all) with the client. In a nested router of axum it is what the router sees, without the prefix.
#[must_use]
pub const fn path() -> Path {
    Path(())
}

/// The extractor of [`path`].
#[derive(Clone, Copy, Debug)]
pub struct Path(());

impl KeyExtractor for Path {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        Told::One(decoded(head.uri().path())).into_key(SCOPE)
    }
}

/// Counts by one segment of the path, percent signs decoded: of `/tenants/acme/users` segment 0 is `tenants`, 1 is
/// `acme`.
///
/// It is missing when the path is shorter or the segment is empty. In a nested router of axum the path is what the
/// router sees, without the prefix. A client can make up any value: limit by address too.
#[must_use]
pub fn path_segment(index: usize) -> PathSegment {
    PathSegment { scope: Name::from(format!("path segment {index}")), index }
}

/// The extractor of [`path_segment`].
#[derive(Clone, Copy, Debug)]
pub struct PathSegment {
    scope: Name,
    index: usize,
}

impl KeyExtractor for PathSegment {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let segment = head.uri().path().strip_prefix('/')?.split('/').nth(self.index)?;
        Told::One(decoded(segment)).into_key(self.scope)
    }
}

/// The bytes that a text of a path stands for: `/%61` and `/a` are one.
pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}
