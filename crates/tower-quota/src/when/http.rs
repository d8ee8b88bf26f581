use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use matchit::Router;

use super::condition::{Condition, PatternError};
#[cfg(feature = "axum")]
use crate::head::Note;
use crate::head::RequestHead;
use crate::key::host_of;
use crate::valid::valid;

/// Matches these methods. `GET` includes `HEAD`, because servers run the same handler.
#[must_use]
pub fn method(methods: impl IntoIterator<Item = Method>) -> Box<dyn Condition> {
    let mut methods: Vec<Method> = methods.into_iter().collect();
    if methods.contains(&Method::GET) {
        methods.push(Method::HEAD);
    }
    Box::new(move |head: &RequestHead<'_>| methods.contains(head.method()))
}

/// Matches paths by a pattern in axum's syntax.
///
/// `{id}` matches one segment, `{*rest}` the rest, and `{{` is a brace. Final braces never match an empty text. Paths
/// are [not decoded](crate::when#caveats).
///
/// Include the prefix of axum's `nest`. If an inner layer rewrites the path, [any of the paths may
/// match](RequestHead::path_matches).
///
/// # Panics
/// Panics if the pattern is invalid.
#[must_use]
#[track_caller]
#[doc(alias = "url")]
pub fn path(pattern: &str) -> Box<dyn Condition> {
    valid(try_path(pattern))
}

/// Works like [`path`], but never panics.
///
/// # Errors
/// Returns an error without a leading slash, with malformed braces, or if a segment begins with `:`
/// or `*`, as in axum 0.7.
pub fn try_path(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let refused = |reason: String| PatternError::Path {
        pattern: pattern.to_owned(),
        reason,
    };
    if !pattern.starts_with('/') {
        return Err(refused("it must begin with \"/\"".into()));
    }
    let mut segments = pattern.split('/');
    if segments.any(|segment| segment.starts_with([':', '*'])) {
        return Err(refused(
            "write \"{name}\" for a segment and \"{*name}\" for the rest".into(),
        ));
    }
    let mut router = Router::new();
    router
        .insert(pattern, ())
        .map_err(|error| refused(error.to_string()))?;
    Ok(Box::new(move |head: &RequestHead<'_>| {
        head.path_matches(|path| router.at(path).is_ok())
    }))
}

/// Matches requests that axum routed by this pattern.
///
/// Include `nest` prefixes. Unlike [`path`], the condition never matches a request without a
/// [`key::route`](crate::key::route()).
#[cfg(feature = "axum")]
#[must_use]
#[doc(alias = "MatchedPath")]
pub fn route(pattern: impl Into<String>) -> Box<dyn Condition> {
    let pattern = pattern.into();
    Box::new(move |head: &RequestHead<'_>| {
        let route = head.matched_route();
        head.note(|| note_on_route(&pattern, route, head));
        route == Some(&*pattern)
    })
}

/// Returns what a request shows about the condition on a route.
#[cfg(feature = "axum")]
fn note_on_route(pattern: &str, route: Option<&str>, head: &RequestHead<'_>) -> Option<Note> {
    let pattern = pattern.to_owned();
    let Some(route) = route else {
        let original = head.extensions().get::<axum::extract::OriginalUri>();
        // Ignore requests without a route, because clients may scan unknown paths.
        return original.is_none().then(|| {
            let reason = "the layer is around the app, where no `Router` has matched a route yet. Add the layer by \
                          `Router::layer` or `Router::route_layer`, or write `when::path`";
            Note::RouteMissed {
                pattern,
                reason: reason.into(),
            }
        });
    };
    if route == pattern {
        return Some(Note::RouteMatched { pattern });
    }
    (inner_route(route, head) == pattern).then(|| Note::RouteMissed {
        pattern,
        reason: format!("it lacks the prefix of axum's `nest`. Write `when::route({route:?})`"),
    })
}

#[cfg(feature = "axum")]
fn inner_route<'a>(matched: &'a str, head: &RequestHead<'_>) -> &'a str {
    let original = head
        .extensions()
        .get()
        .map_or("", |axum::extract::OriginalUri(original)| original.path());
    let slashes = |path: &str| path.matches('/').count();
    let prefix = slashes(original).saturating_sub(slashes(head.uri().path()));
    matched
        .match_indices('/')
        .nth(prefix)
        .map_or(matched, |(start, _)| &matched[start..])
}

/// Matches the host `api.example.com`, or hosts under `*.example.com`.
///
/// `*.` does not match the domain alone. Case, port and a trailing dot are ignored. Write IPv6 in brackets, and
/// internationalised names as `xn--...`.
///
/// Match your sites, not your clients, because clients choose the host. `X-Forwarded-Host` is ignored. If a request
/// [sends different hosts](RequestHead::host_matches), limits and [block lists](crate::Policy::block) match any host,
/// and exemptions must match all.
///
/// # Panics
/// Panics if the pattern is invalid.
#[must_use]
#[track_caller]
pub fn host(pattern: &str) -> Box<dyn Condition> {
    valid(try_host(pattern))
}

/// Works like [`host`], but never panics.
///
/// # Errors
/// Returns an error for empty patterns, ports, stars except in a leading `*.`, or invalid
/// characters.
pub fn try_host(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let domain = pattern.strip_prefix("*.");
    let name = domain.unwrap_or(pattern);
    let bracketed = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = match bracketed {
        Some(inside) => domain.is_none() && inside.parse::<core::net::Ipv6Addr>().is_ok(),
        None => {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        }
    };
    if !is_host || name.starts_with('.') {
        return Err(PatternError::Host(pattern.to_owned()));
    }
    let name = host_of(name.as_bytes()).into_owned();
    Ok(if domain.is_some() {
        Box::new(move |head: &RequestHead<'_>| head.host_matches(|host| is_under(host, &name)))
    } else {
        Box::new(move |head: &RequestHead<'_>| head.host_matches(|host| *host == *name))
    })
}

fn is_under(host: &[u8], domain: &[u8]) -> bool {
    host.strip_suffix(domain)
        .and_then(|before| before.strip_suffix(b"."))
        .is_some_and(|label| !label.is_empty())
}

/// Matches calls of a gRPC service, like `"grpc.health.v1.Health"`.
///
/// Like gRPC servers, the condition ignores the content type.
///
/// # Panics
/// Panics if the name is invalid.
#[must_use]
#[track_caller]
#[doc(alias = "grpc")]
pub fn grpc_service(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_service(name))
}

/// Works like [`grpc_service`], but never panics.
///
/// # Errors
/// Returns an error if the name is empty or has a slash.
pub fn try_grpc_service(name: &str) -> Result<Box<dyn Condition>, PatternError> {
    if name.is_empty() || name.contains('/') {
        return Err(PatternError::GrpcService(name.to_owned()));
    }
    let start = format!("/{name}/");
    Ok(Box::new(move |head: &RequestHead<'_>| {
        head.uri().path().starts_with(&start)
    }))
}

/// Matches calls of a gRPC method, like `"grpc.health.v1.Health/Check"`.
///
/// # Panics
/// Panics if the name is invalid.
#[must_use]
#[track_caller]
#[doc(alias = "rpc")]
pub fn grpc_method(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_method(name))
}

/// Works like [`grpc_method`], but never panics.
///
/// # Errors
/// Returns an error unless the name is a service, one slash, and a method.
pub fn try_grpc_method(name: &str) -> Result<Box<dyn Condition>, PatternError> {
    match name.split_once('/') {
        Some((service, method))
            if !service.is_empty() && !method.is_empty() && !method.contains('/') => {}
        _ => return Err(PatternError::GrpcMethod(name.to_owned())),
    }
    let path = format!("/{name}");
    Ok(Box::new(move |head: &RequestHead<'_>| {
        head.uri().path() == path
    }))
}

/// Matches CORS preflight requests (Fetch standard).
///
/// Skip preflights only if a CORS layer answers first. Otherwise clients can send preflights to your fallbacks and
/// `any(..)` routes.
#[must_use]
#[doc(alias = "options")]
pub fn cors_preflight() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| {
        head.method() == Method::OPTIONS
            && head.headers().contains_key(ORIGIN)
            && head.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    })
}
