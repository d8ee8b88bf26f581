//! Conditions on the method.

use http::Method;

use super::Condition;
use crate::head::RequestHead;

/// Holds of requests with one of these methods. `GET` does not include `HEAD`, which most routers answer alike.
#[must_use]
pub fn method(methods: impl IntoIterator<Item = Method>) -> Box<dyn Condition> {
    let methods: Box<[Method]> = methods.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| methods.contains(head.method()))
}
