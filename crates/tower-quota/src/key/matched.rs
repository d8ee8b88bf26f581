//! Keys from axum's matched route, or a parameter of it.

use axum::extract::MatchedPath;
use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use super::single::{SentValue, key_of, key_of_values};
use super::uri::decoded;
use crate::head::RequestHead;

/// Counts by the pattern of axum's matched route, such as `/users/{id}`.
///
/// All paths that match the pattern share one counter, so made-up paths get no new counter. Under `nest` it is the full
/// pattern, with the prefix.
///
/// The pattern is known inside `Router::layer` and `Router::route_layer`. The key is missing in fallbacks, for layers
/// outside a `nest_service`, and for layers around an app (as with `ServiceBuilder::service(app)`), because no route is
/// matched yet.
#[must_use]
#[doc(alias = "MatchedPath")]
#[doc(alias = "endpoint")]
pub const fn route() -> RouteKey {
    RouteKey {
        scope: Name::new("route"),
    }
}

/// The extractor of [`route`].
#[derive(Clone, Copy, Debug)]
pub struct RouteKey {
    scope: Name,
}

impl KeyExtractor for RouteKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let matched = head.extensions().get::<MatchedPath>()?;
        Some(Key::new(self.scope, matched.as_str().as_bytes()))
    }
}

/// Counts by a parameter of axum's matched route, such as `id` of `/users/{id}`.
///
/// Percent-encoding is decoded. Wildcards such as `{*rest}` are parameters too. The key is missing if that of [`route`]
/// is, and if the route has no such parameter. A client can make up any value: limit by address too.
#[must_use]
pub fn path_parameter(name: impl Into<Name>) -> PathParameterKey {
    let name = name.into();
    PathParameterKey {
        scope: Name::from(format!("path parameter {name}")),
        name,
    }
}

/// The extractor of [`path_parameter`].
#[derive(Clone, Copy, Debug)]
pub struct PathParameterKey {
    scope: Name,
    name: Name,
}

impl PathParameterKey {
    fn value<'r>(&self, head: &RequestHead<'r>) -> SentValue<'r> {
        // axum does not expose the values to layers. Both the pattern and the original path have the prefix of a
        // `nest`.
        let pattern = head.extensions().get::<MatchedPath>()?.as_str();
        parameter(pattern, head.path(), self.name.as_str()).map(decoded)
    }
}

impl KeyExtractor for PathParameterKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        key_of_values(self.scope, core::iter::once(self.value(head)))
    }
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

key_of! {
    [] RouteKey;
    [] PathParameterKey;
}
