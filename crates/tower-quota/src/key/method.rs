//! Counting by method.

use http::Method as HttpMethod;
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("method");

/// Counts by the request's method: `GET` apart from `POST`. Methods beyond those of RFC 9110 and `PATCH` share one
/// counter, so that made-up methods get none of their own.
#[must_use]
pub const fn method() -> Method {
    Method(())
}

/// The extractor of [`method`].
#[derive(Clone, Copy, Debug)]
pub struct Method(());

impl KeyExtractor for Method {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let method = match *head.method() {
            HttpMethod::GET
            | HttpMethod::HEAD
            | HttpMethod::POST
            | HttpMethod::PUT
            | HttpMethod::DELETE
            | HttpMethod::CONNECT
            | HttpMethod::OPTIONS
            | HttpMethod::TRACE
            | HttpMethod::PATCH => head.method().as_str(),
            _ => "",
        };
        Some(Key::new(SCOPE, method.as_bytes()))
    }
}
