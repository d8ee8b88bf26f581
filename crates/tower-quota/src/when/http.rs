//! Conditions on the target of a request: method, path, route, host, gRPC service or method.

use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use matchit::Router;

use super::condition::{Condition, PatternError};
#[cfg(feature = "axum")]
use crate::checks::Watch;
use crate::head::RequestHead;
use crate::key::host_of;
use crate::valid::valid;

/// Matches requests with one of these methods. `GET` includes `HEAD`, because servers run the same handler for both.
///
/// axum's `get()` serves `HEAD` too. To match `GET` alone, use a closure on [`RequestHead::method`].
#[must_use]
pub fn method(methods: impl IntoIterator<Item = Method>) -> Box<dyn Condition> {
    let mut methods: Vec<Method> = methods.into_iter().collect();
    if methods.contains(&Method::GET) {
        methods.push(Method::HEAD);
    }
    Box::new(move |head: &RequestHead<'_>| methods.contains(head.method()))
}

/// Matches requests whose path matches this pattern.
///
/// Patterns are axum's: `{id}` matches one segment, `{*rest}` any text up to the end, and `{{` is a literal brace. At the end
/// of a pattern, braces do not match an empty text. The path is not decoded, see the [caveats](crate::when#caveats).
///
/// With the feature `axum`, write the prefix of a `nest` too: `"/api/items"`. If a layer between routers rewrites the path,
/// the limit applies if [either path matches](RequestHead::path_matches).
///
/// # Panics
/// If the pattern is invalid; see [`try_path`].
#[must_use]
#[track_caller]
#[doc(alias = "url")]
pub fn path(pattern: &str) -> Box<dyn Condition> {
    valid(try_path(pattern))
}

/// Works like [`path`], but returns an error for an invalid pattern.
///
/// # Errors
/// [`PatternError::Path`] if the pattern does not begin with a slash, has malformed braces, or has a segment that begins
/// with `:` or `*`, the syntax of axum up to 0.7.
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

/// Matches requests that axum has matched to the route with this pattern.
///
/// Write the pattern with the prefix of a `nest`: `"/api/users/{id}"`. The condition does not match where
/// [`key::route`](crate::key::route()) is missing. [`path`] needs no router.
#[cfg(feature = "axum")]
#[must_use]
#[doc(alias = "MatchedPath")]
pub fn route(pattern: impl Into<String>) -> Box<dyn Condition> {
    let pattern = pattern.into();
    Box::new(move |head: &RequestHead<'_>| {
        let route = head.matched_route();
        if let Some(watch) = head.watch() {
            watch_route(watch, &pattern, route, head);
        }
        route == Some(&*pattern)
    })
}

/// Reports a condition on a route that has matched, or that was written for another place of the layer.
#[cfg(feature = "axum")]
fn watch_route(watch: &Watch, pattern: &str, route: Option<&str>, head: &RequestHead<'_>) {
    let Some(route) = route else {
        let original = head.extensions().get::<axum::extract::OriginalUri>();
        // A scan of paths without a route proves nothing.
        if original.is_none() {
            watch.route_missed(pattern, || {
                String::from(
                    "the layer is around the app, where no `Router` has matched a route yet. Add the layer by \
                     `Router::layer` or `Router::route_layer`, or write `when::path`",
                )
            });
        }
        return;
    };
    if route == pattern {
        watch.route_matched(pattern);
    } else if inner_route(route, head) == pattern {
        watch.route_missed(pattern, || {
            format!("it lacks the prefix of axum's `nest`. Write `when::route({route:?})`")
        });
    }
}

/// Returns a matched route without the prefix of the `nest`, which has as many segments as the path has lost.
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

/// Matches requests for this host, `api.example.com`, or under this domain, `*.example.com`.
///
/// `*.` matches one or more labels, so not the domain itself. Case, port and a trailing dot are ignored. Write IPv6 addresses
/// in brackets, and internationalised names as `xn--...`.
///
/// If a request [sends different hosts](RequestHead::host_matches), a limit and a [block list](crate::Policy::block) match
/// on any of them, and a condition that exempts requests only if all match. Clients choose the host: it identifies your
/// sites, not your clients. `X-Forwarded-Host`, which axum-extra's `Host` prefers, is not read.
///
/// # Panics
/// If the pattern is not a host; see [`try_host`].
#[must_use]
#[track_caller]
pub fn host(pattern: &str) -> Box<dyn Condition> {
    valid(try_host(pattern))
}

/// Works like [`host`], but returns an error for an invalid pattern.
///
/// # Errors
/// [`PatternError::Host`] if the pattern is empty, has a port, has a star except in `*.` at its beginning, or has
/// characters that are not valid in a host.
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

/// Returns whether a host is under a domain: at least one character and a dot come before it.
fn is_under(host: &[u8], domain: &[u8]) -> bool {
    host.strip_suffix(domain)
        .and_then(|before| before.strip_suffix(b"."))
        .is_some_and(|label| !label.is_empty())
}

/// Matches calls of this gRPC service, by its full name: `"grpc.health.v1.Health"`.
///
/// The condition compares the path, as gRPC servers do, and ignores the content type, because many servers answer calls with
/// any content type.
///
/// # Panics
/// If this is not the name of a service; see [`try_grpc_service`].
#[must_use]
#[track_caller]
#[doc(alias = "grpc")]
pub fn grpc_service(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_service(name))
}

/// Works like [`grpc_service`], but returns an error for an invalid name.
///
/// # Errors
/// [`PatternError::GrpcService`] if the name is empty or has a slash.
pub fn try_grpc_service(name: &str) -> Result<Box<dyn Condition>, PatternError> {
    if name.is_empty() || name.contains('/') {
        return Err(PatternError::GrpcService(name.to_owned()));
    }
    let start = format!("/{name}/");
    Ok(Box::new(move |head: &RequestHead<'_>| {
        head.uri().path().starts_with(&start)
    }))
}

/// Matches calls of this gRPC method, by its full name: `"grpc.health.v1.Health/Check"`.
///
/// # Panics
/// If this is not the name of a method; see [`try_grpc_method`].
#[must_use]
#[track_caller]
#[doc(alias = "rpc")]
pub fn grpc_method(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_method(name))
}

/// Works like [`grpc_method`], but returns an error for an invalid name.
///
/// # Errors
/// [`PatternError::GrpcMethod`] if the name is not a service, one slash, and a method.
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

/// Matches CORS preflight requests, as defined by the Fetch standard.
///
/// Browsers send these `OPTIONS` requests automatically, so it is fair to skip them. But any client can send them, and routes
/// with `any(..)` and fallbacks, such as a gateway's, run their handlers for them. Skip them only if a CORS layer answers
/// them first.
#[must_use]
#[doc(alias = "options")]
pub fn cors_preflight() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| {
        head.method() == Method::OPTIONS
            && head.headers().contains_key(ORIGIN)
            && head.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    })
}
