//! Counting by a parameter of the matched route.

use axum::extract::{MatchedPath, OriginalUri};
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::path::decoded;
use super::told::Told;
use crate::head::RequestHead;

/// Counts by what a parameter of axum's matched route stands for, percent signs decoded: with the route `/users/{id}`
/// and `key::path_parameter("id")`, each user apart. Wildcards such as `{*rest}` are parameters too.
///
/// It is missing where [`route`](super::route) is, and where the route has no such parameter. A client can make up any
/// value: limit by address too.
#[must_use]
pub fn path_parameter(name: impl Into<Name>) -> PathParameter {
    let name = name.into();
    PathParameter { scope: Name::from(format!("path parameter {name}")), name }
}

/// The extractor of [`path_parameter`].
#[derive(Clone, Copy, Debug)]
pub struct PathParameter {
    scope: Name,
    name: Name,
}

impl KeyExtractor for PathParameter {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        // axum keeps the values to itself, for the handler. The pattern is the whole one, so is the original path.
        let pattern = head.extensions().get::<MatchedPath>()?.as_str();
        let uri = head.extensions().get::<OriginalUri>().map_or(head.uri(), |OriginalUri(whole)| whole);
        let value = parameter(pattern, uri.path(), self.name.as_str())?;
        Told::One(decoded(value)).into_key(self.scope)
    }
}

/// What a parameter of a pattern stands for in a path that matches the pattern.
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

/// The name in `{*name}`.
fn wildcard(part: &str) -> Option<&str> {
    part.strip_prefix("{*")?.strip_suffix('}')
}

/// What stands before a parameter at the end of a segment, and its name. Doubled braces are braces, not parameters.
fn named(part: &str) -> Option<(&str, &str)> {
    let (before, name) = part.strip_suffix('}')?.rsplit_once('{')?;
    (!before.ends_with('{') && !name.ends_with('}')).then_some((before, name))
}
