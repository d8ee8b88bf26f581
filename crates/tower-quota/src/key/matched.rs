//! Counting by axum's matched route, or a parameter of it.

use axum::extract::MatchedPath;
use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use super::single::{Value, key_of, key_of_values};
use super::uri::decoded;
use crate::head::RequestHead;

/// Counts by the pattern of axum's matched route, such as `/users/{id}`.
///
/// Every path that matches the pattern is counted together, so that made-up paths get no counter of their own. Under
/// `nest` it is the full pattern, prefix included.
///
/// The pattern is there inside `Router::layer` and `Router::route_layer`. It is missing in fallbacks, for layers outside a
/// `nest_service`, and for layers around an app (as with `ServiceBuilder::service(app)`), where nothing has been matched.
#[must_use]
#[doc(alias = "MatchedPath")]
#[doc(alias = "endpoint")]
pub const fn route() -> RouteKey {
    RouteKey { scope: Name::new("route") }
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

/// Counts by a parameter of axum's matched route: with `/users/{id}` and `path_parameter("id")`, by each user.
///
/// Percent signs are decoded. Wildcards such as `{*rest}` are parameters too. It is missing where [`route`] is, and where
/// the route has no such parameter. A client can make up any value: limit by address too.
#[must_use]
pub fn path_parameter(name: impl Into<Name>) -> PathParameterKey {
    let name = name.into();
    PathParameterKey { scope: Name::from(format!("path parameter {name}")), name }
}

/// The extractor of [`path_parameter`].
#[derive(Clone, Copy, Debug)]
pub struct PathParameterKey {
    scope: Name,
    name: Name,
}

impl PathParameterKey {
    fn value<'r>(&self, head: &RequestHead<'r>) -> Value<'r> {
        // axum keeps the values to itself, for the handler. The pattern is the full one, so is the original path.
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

/// Returns what a parameter of a pattern stands for in a path that matches the pattern.
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
            // A doubled brace of the pattern is one of the path.
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

/// Returns the text before a parameter at the end of a segment, and its name. Doubled braces are braces, not parameters.
fn named(part: &str) -> Option<(&str, &str)> {
    let (before, name) = part.strip_suffix('}')?.rsplit_once('{')?;
    (!before.ends_with('{') && !name.ends_with('}')).then_some((before, name))
}

key_of! {
    [] RouteKey;
    [] PathParameterKey;
}
