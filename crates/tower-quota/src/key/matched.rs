use tower_quota_core::Name;

use crate::head::RequestHead;

pub(super) fn matched_parameter<'r>(head: &RequestHead<'r>, name: Name) -> Option<&'r str> {
    // axum hides the values from layers. Pattern and path both include the `nest` prefix.
    parameter(head.route_for_key()?, head.path(), name.as_str())
}

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

fn wildcard(part: &str) -> Option<&str> {
    part.strip_prefix("{*")?.strip_suffix('}')
}

fn named(part: &str) -> Option<(&str, &str)> {
    let (before, name) = part.strip_suffix('}')?.rsplit_once('{')?;
    (!before.ends_with('{') && !name.ends_with('}')).then_some((before, name))
}
