//! Counting by the matched route.

use axum::extract::MatchedPath;
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("route");

/// Counts by the pattern of axum's matched route, such as `/users/{id}`: every path that matches it together, so that
/// made-up paths get no counter of their own.
///
/// The pattern is there inside `Router::layer` and `Router::route_layer`. Under `nest` it is the whole pattern, prefix
/// included. It is missing in fallbacks, for layers outside a `nest_service`, and for layers around a whole app (as with
/// `ServiceBuilder::service(app)`), where nothing has been matched yet.
#[must_use]
pub const fn route() -> Route {
    Route(())
}

/// The extractor of [`route`].
#[derive(Clone, Copy, Debug)]
pub struct Route(());

impl KeyExtractor for Route {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let matched = head.extensions().get::<MatchedPath>()?;
        Some(Key::new(SCOPE, matched.as_str().as_bytes()))
    }
}
