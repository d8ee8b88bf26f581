//! Conditions on the target of a request: method, path, route, host, gRPC service or method.

use std::borrow::Cow;

use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use matchit::Router;

use super::condition::{Condition, PatternError};
#[cfg(feature = "axum")]
use crate::checks::Watch;
use crate::head::RequestHead;
use crate::key::host_of;
use crate::valid::valid;

/// Matches requests with one of these methods. `GET` does not include `HEAD`.
#[must_use]
pub fn method(methods: impl IntoIterator<Item = Method>) -> Box<dyn Condition> {
    let methods: Box<[Method]> = methods.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| methods.contains(head.method()))
}

/// Matches requests whose path matches this pattern.
///
/// Patterns are those of axum's routes. In `/users/{id}` the braces match one segment, in `/files/{*rest}` any text up
/// to the end; at the end of a pattern neither matches an empty text. `{{` and `}}` are literal braces.
///
/// The path is not decoded. With the feature `axum`, write the prefix of a `nest` too: `"/api/items"`. If a layer between
/// routers rewrites the path, the limit applies if [either path matches](RequestHead::path_matches). The match is [as
/// strict as a router](crate::when#caveats): `/users/` and `/users` are different paths.
///
/// # Panics
/// When the pattern is invalid; see [`try_path`].
#[must_use]
#[track_caller]
#[doc(alias = "url")]
pub fn path(pattern: &str) -> Box<dyn Condition> {
    valid(try_path(pattern))
}

/// Works like [`path`], but returns an error for an invalid pattern.
///
/// # Errors
/// [`PatternError::Path`] when the pattern does not begin with a slash, when its braces are malformed, or when a
/// segment begins with `:` or `*`, the syntax of axum up to 0.7.
pub fn try_path(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let refused = |reason: String| PatternError::Path {
        pattern: pattern.to_owned(),
        reason,
    };
    if !pattern.starts_with('/') {
        return Err(refused("it must begin with \"/\"".into()));
    }
    if pattern
        .split('/')
        .any(|segment| segment.starts_with([':', '*']))
    {
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
/// Write the pattern as it was given to the router and, under `nest`, with the prefix: `"/api/users/{id}"`. If no route
/// is matched yet, the condition never matches, see [`key::route`](crate::key::route()). A pattern that is not in the
/// router never matches either. [`path`] needs no router.
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

/// Returns a matched route without the prefix of the `nest`.
///
/// The prefix has as many segments as were removed from the path.
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
/// A host may be an address, IPv6 in brackets. `*.` matches any number of labels before the domain, but not the domain
/// itself. Case, port and a trailing dot are ignored.
///
/// The host is that of the request's target, as in HTTP/2, and that of each `Host` header (RFC 9112, section 3.2). If they
/// differ, a limit and a [block list](crate::Policy::block) match on any of them, and what exempts a request only if all
/// match: see [`RequestHead::holds_in_doubt`]. Clients choose the host: it identifies your sites, not your clients.
/// Internationalised names are compared in the form in which they are sent, `xn--...`.
///
/// # Panics
/// When this is not a host; see [`try_host`].
#[must_use]
#[track_caller]
pub fn host(pattern: &str) -> Box<dyn Condition> {
    valid(try_host(pattern))
}

/// Works like [`host`], but returns an error for an invalid pattern.
///
/// # Errors
/// [`PatternError::Host`] when the pattern is empty, has a port, has a star except in `*.` at its beginning, or has
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
    let (name, is_domain) = (host_of(name.as_bytes()).into_owned(), domain.is_some());
    Ok(Box::new(move |head: &RequestHead<'_>| {
        let is_asked = |host: Cow<'_, [u8]>| {
            if is_domain {
                is_under(&host, &name)
            } else {
                *host == *name
            }
        };
        let mut hosts = head.hosts();
        if head.holds_in_doubt() {
            hosts.any(is_asked)
        } else {
            hosts.next().is_some_and(is_asked) && hosts.all(is_asked)
        }
    }))
}

/// Returns whether a host is under a domain: at least one character and a dot come before it.
fn is_under(host: &[u8], domain: &[u8]) -> bool {
    host.strip_suffix(domain)
        .and_then(|before| before.strip_suffix(b"."))
        .is_some_and(|label| !label.is_empty())
}

/// Matches calls of this gRPC service, by its full name: `"grpc.health.v1.Health"`.
///
/// It is compared with the path alone, `/grpc.health.v1.Health/Check`, as gRPC servers do. The content type is ignored,
/// because many servers answer calls with any content type.
///
/// # Panics
/// When this is not the name of a service; see [`try_grpc_service`].
#[must_use]
#[track_caller]
#[doc(alias = "grpc")]
pub fn grpc_service(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_service(name))
}

/// Works like [`grpc_service`], but returns an error for an invalid name.
///
/// # Errors
/// [`PatternError::GrpcService`] when the name is empty or has a slash.
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
/// Like [`grpc_service`], it is compared with the path alone.
///
/// # Panics
/// When this is not the name of a method; see [`try_grpc_method`].
#[must_use]
#[track_caller]
#[doc(alias = "rpc")]
pub fn grpc_method(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_method(name))
}

/// Works like [`grpc_method`], but returns an error for an invalid name.
///
/// # Errors
/// [`PatternError::GrpcMethod`] when the name is not a service, one slash, and a method.
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
/// They are `OPTIONS` with `Origin` and `Access-Control-Request-Method`. Browsers send them automatically, so it is
/// fair to skip them. But any client can send them: skip them only if they are cheap to answer.
#[must_use]
#[doc(alias = "options")]
pub fn cors_preflight() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| {
        head.method() == Method::OPTIONS
            && head.headers().contains_key(ORIGIN)
            && head.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    })
}
