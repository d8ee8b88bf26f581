//! Conditions on what is asked for: method, path, route, host, gRPC service or method.

use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use matchit::Router;

use super::condition::{Condition, PatternError};
use crate::head::RequestHead;
use crate::key::host_of;
use crate::valid::valid;

/// Holds of requests with one of these methods. `GET` does not include `HEAD`, which most routers answer alike.
#[must_use]
pub fn method(methods: impl IntoIterator<Item = Method>) -> Box<dyn Condition> {
    let methods: Box<[Method]> = methods.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| methods.contains(head.method()))
}

/// Holds of requests whose path matches this pattern.
///
/// Patterns are those of axum's routes: in `/users/{id}` the braces stand for one segment of any text, in `/files/{*rest}`
/// for any text up to the end; at the end neither may be empty. `{{` and `}}` are the braces themselves.
///
/// The path is the [one that the client asked for](RequestHead::path), not decoded: with the feature `axum` it has the
/// prefix inside axum's `nest` too, `"/api/items"`. Without that feature it is the path that this layer sees.
/// [As strict as a router](crate::when#caveats), `/users/` is another path than `/users`.
///
/// # Panics
/// When the pattern is invalid; see [`try_path`].
#[must_use]
#[track_caller]
#[doc(alias = "url")]
pub fn path(pattern: &str) -> Box<dyn Condition> {
    valid(try_path(pattern))
}

/// [`path`] for a pattern that was not written in code.
///
/// # Errors
/// [`PatternError::Path`] when the pattern does not begin with a slash, when its braces are malformed, or when a segment
/// begins with `:` or `*`, which were the braces of axum up to 0.7.
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
    Ok(Box::new(move |head: &RequestHead<'_>| router.at(head.path()).is_ok()))
}

/// Holds of requests that axum has matched to the route with this pattern.
///
/// Spell the pattern as it was given to the router and, under `nest`, with the prefix: `"/api/users/{id}"`. Where nothing
/// has been matched, the condition never holds, see [`key::route`](crate::key::route()). A pattern that the router does not
/// have never holds either; [`path`] needs no router.
#[cfg(feature = "axum")]
#[must_use]
#[doc(alias = "MatchedPath")]
pub fn route(pattern: impl Into<String>) -> Box<dyn Condition> {
    let pattern = pattern.into();
    Box::new(move |head: &RequestHead<'_>| match head.extensions().get::<axum::extract::MatchedPath>() {
        Some(matched) if head.is_as_nested() => inner_route(matched.as_str(), head) == pattern,
        Some(matched) => matched.as_str() == pattern,
        None => head.is_as_nested() && head.is_outside_router(),
    })
}

/// Returns what is left of a matched route without the prefix of the `nest`, which has as many segments as the path has lost.
#[cfg(feature = "axum")]
fn inner_route<'a>(matched: &'a str, head: &RequestHead<'_>) -> &'a str {
    let original = head.extensions().get().map_or("", |axum::extract::OriginalUri(original)| original.path());
    let slashes = |path: &str| path.matches('/').count();
    let prefix = slashes(original).saturating_sub(slashes(head.uri().path()));
    matched.match_indices('/').nth(prefix).map_or(matched, |(start, _)| &matched[start..])
}

/// Holds of requests for this host, `api.example.com`, or for every name under a domain, `*.example.com`.
///
/// A host may be an address, IPv6 in brackets. Under a domain are all names with any number of labels before it, not the
/// domain itself. Upper and lower case, the port and a dot at the end make no difference.
///
/// The host is that of the request's target, as in HTTP/2, or else that of the first `Host` header (RFC 9112, section 3.2).
/// Clients choose it: it distinguishes your sites, not your clients. Internationalised names are compared in the form they
/// are sent in, `xn--...`.
///
/// # Panics
/// When this is not a host; see [`try_host`].
#[must_use]
#[track_caller]
pub fn host(pattern: &str) -> Box<dyn Condition> {
    valid(try_host(pattern))
}

/// [`host`] for a pattern that was not written in code.
///
/// # Errors
/// [`PatternError::Host`] when the pattern is empty, has a port, has a star anywhere but in `*.` at its beginning, or has
/// characters that no host has.
pub fn try_host(pattern: &str) -> Result<Box<dyn Condition>, PatternError> {
    let domain = pattern.strip_prefix("*.");
    let name = domain.unwrap_or(pattern);
    let bracketed = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match bracketed {
        Some(inside) => domain.is_none() && inside.parse::<core::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    if !is_host || name.starts_with('.') {
        return Err(PatternError::Host(pattern.to_owned()));
    }
    let (name, is_domain) = (host_of(name.as_bytes()).into_owned(), domain.is_some());
    Ok(Box::new(move |head: &RequestHead<'_>| {
        let asked = match head.uri().authority() {
            Some(authority) => Some(authority.as_str().as_bytes()),
            None => head.headers().get(HOST).map(|line| line.as_bytes()),
        };
        let asked = asked.map(host_of).unwrap_or_default();
        if is_domain { is_under(&asked, &name) } else { *asked == *name }
    }))
}

/// Returns whether a host is one of those under a domain: at least one character and a dot come before the domain.
fn is_under(host: &[u8], domain: &[u8]) -> bool {
    host.strip_suffix(domain).and_then(|before| before.strip_suffix(b".")).is_some_and(|label| !label.is_empty())
}

/// Holds of calls of this gRPC service, by its full name: `"grpc.health.v1.Health"`.
///
/// It is compared with the path alone, `/grpc.health.v1.Health/Check`, by which gRPC servers choose the service. Calls are
/// counted whatever they say of their content type, since many servers answer them all the same.
///
/// # Panics
/// When this is not the name of a service; see [`try_grpc_service`].
#[must_use]
#[track_caller]
#[doc(alias = "grpc")]
pub fn grpc_service(name: &str) -> Box<dyn Condition> {
    valid(try_grpc_service(name))
}

/// [`grpc_service`] for a name that was not written in code.
///
/// # Errors
/// [`PatternError::GrpcService`] when the name is empty or has a slash.
pub fn try_grpc_service(name: &str) -> Result<Box<dyn Condition>, PatternError> {
    if name.is_empty() || name.contains('/') {
        return Err(PatternError::GrpcService(name.to_owned()));
    }
    let start = format!("/{name}/");
    Ok(Box::new(move |head: &RequestHead<'_>| head.uri().path().starts_with(&start)))
}

/// Holds of calls of this gRPC method, by its full name: `"grpc.health.v1.Health/Check"`.
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

/// [`grpc_method`] for a name that was not written in code.
///
/// # Errors
/// [`PatternError::GrpcMethod`] when the name is not that of a service, one slash, and that of a method.
pub fn try_grpc_method(name: &str) -> Result<Box<dyn Condition>, PatternError> {
    match name.split_once('/') {
        Some((service, method)) if !service.is_empty() && !method.is_empty() && !method.contains('/') => {}
        _ => return Err(PatternError::GrpcMethod(name.to_owned())),
    }
    let path = format!("/{name}");
    Ok(Box::new(move |head: &RequestHead<'_>| head.uri().path() == path))
}

/// Holds of CORS preflight requests: `OPTIONS` with `Origin` and `Access-Control-Request-Method` (the Fetch standard).
///
/// Browsers send them by themselves, so skipping them is fair to their users. But any client can send them: skip them only
/// where they are cheap to answer.
#[must_use]
#[doc(alias = "options")]
pub fn cors_preflight() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| {
        head.method() == Method::OPTIONS
            && head.headers().contains_key(ORIGIN)
            && head.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    })
}
