//! Keys from axum's matched route, or a parameter of the route.

use axum::extract::MatchedPath;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;

/// Counts by the pattern of axum's matched route, such as `/users/{id}`, with the prefix of a `nest`.
///
/// Made-up paths get no new counter. axum knows the pattern inside `Router::layer` and `Router::route_layer`. The key is
/// missing in fallbacks, outside a `nest_service`, and in layers around an app (as with `ServiceBuilder::service(app)`).
#[doc(alias = "MatchedPath")]
#[doc(alias = "endpoint")]
pub fn route() -> ValueKey {
    ValueKey::of(Place::Route)
}

/// Counts by a parameter of axum's matched route, such as `id` of `/users/{id}` or `rest` of `/{*rest}`, decoded.
///
/// The key is missing where the key of [`route`] is. A client can make up any value: limit by address too.
pub fn path_parameter(name: impl Into<Name>) -> ValueKey {
    ValueKey::of(Place::PathParameter(name.into()))
}

pub(super) fn matched_route<'r>(head: &RequestHead<'r>) -> Option<&'r str> {
    head.extensions().get().map(MatchedPath::as_str)
}

pub(super) fn matched_parameter<'r>(head: &RequestHead<'r>, name: Name) -> Option<&'r str> {
    // axum does not expose the values to layers. Both the pattern and the original path have the prefix of a `nest`.
    parameter(matched_route(head)?, head.path(), name.as_str())
}

/// Returns the value of a pattern's parameter in a path that matches the pattern.
fn parameter<'p>(pattern: &str, mut path: &'p str, name: &str) -> Option<&'p str> {
    for part in pattern.strip_prefix('/')?.split('/') {
        path = path.strip_prefix('/')?;
        if wildcard(part) == Some(name) {
            return Some(path);
        }
        let (segment, _) = path.split_once('/').unwrap_or((path, ""));
        if let Some((before, parameter)) = named(part)
            && parameter == name
        {
            // A doubled brace in the pattern is a single brace in the path.
            let doubled = before.matches("{{").count() + before.matches("}}").count();
            return segment.get(before.len() - doubled..);
        }
        path = &path[segment.len()..];
    }
    None
}

/// Returns the name in `{*name}`.
fn wildcard(part: &str) -> Option<&str> {
    part.strip_prefix("{*")?.strip_suffix('}')
}

/// Returns the text before a parameter at the end of a segment, and its name.
///
/// Doubled braces are literal braces, not parameters.
fn named(part: &str) -> Option<(&str, &str)> {
    let (before, name) = part.strip_suffix('}')?.rsplit_once('{')?;
    (!before.ends_with('{') && !name.ends_with('}')).then_some((before, name))
}
