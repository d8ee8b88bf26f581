//! Conditions on the matched route.

use axum::extract::MatchedPath;

use super::Condition;
use crate::head::RequestHead;

/// Holds of requests that axum has matched to the route with this pattern, spelled as it was given to the router and,
/// under `nest`, with the prefix: `"/api/users/{id}"`.
///
/// Where nothing has been matched, it holds of nothing: see [`key::route`](crate::key::route()). A pattern that the
/// router does not have holds of nothing either, and nobody notices; [`path`](super::path()) needs no router.
#[must_use]
pub fn route(pattern: impl Into<String>) -> Box<dyn Condition> {
    let pattern = pattern.into();
    Box::new(move |head: &RequestHead<'_>| {
        head.extensions().get::<MatchedPath>().is_some_and(|matched| matched.as_str() == pattern)
    })
}
