//! Conditions on the path.

use matchit::Router;

use super::error::sound;
use super::{Condition, PatternError};
use crate::head::RequestHead;

/// Holds of requests whose path matches this pattern. Patterns are those of axum's routes: in `/users/{id}` one segment
/// of any text is where the braces are, in `/files/{*rest}` any text up to the end; at the end neither may be empty.
/// `{{` and `}}` are the braces themselves.
///
/// The path is that of the request [as this layer sees it](RequestHead::uri), not decoded: inside axum's `nest` it is
/// without the prefix. [As strict as a router](crate::when#patterns-are-as-strict-as-routers), `/users/` is another path
/// than `/users`.
///
/// # Panics
/// When the pattern means nothing; see [`try_path`].
#[must_use]
#[track_caller]
pub fn path(pattern: &str) -> Box<dyn Condition> {
    sound(try_path(pattern))
}

/// [`path`] for a pattern that was not written in code.
///
/// # Errors
/// [`PatternError::Path`] when the pattern does not begin with a slash, when its braces make no sense, or when a segment
/// begins with `:` or `*`, which meant what braces mean up to axum 0.7.
pub fn try_path(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let refused = |reason: String| PatternError::Path { pattern: pattern.to_owned(), reason };
    if !pattern.starts_with('/') {
        return Err(refused("it must begin with \"/\"".into()));
    }
    if pattern.split('/').any(|segment| segment.starts_with([':', '*'])) {
        return Err(refused("write \"{name}\" for a segment and \"{*name}\" for the rest".into()));
    }
    let mut router = Router::new();
    router.insert(pattern, ()).map_err(|error| refused(error.to_string()))?;
    Ok(Box::new(move |head: &RequestHead<'_>| router.at(head.uri().path()).is_ok()))
}
