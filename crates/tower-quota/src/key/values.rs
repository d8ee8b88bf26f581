//! The extractors of one value: their type, the place of the value, and the functions that name the place.

use std::borrow::Cow;

use http::header::{HeaderName, InvalidHeaderName};
use tower_quota_core::{Key, Name};

use super::authorization::{credentials, user};
use super::extractor::KeyExtractor;
use super::grpc::{called, metadata_values};
use super::header::{SentValue, cookies, lines};
#[cfg(feature = "axum")]
use super::matched::matched_parameter;
use super::target::{decoded, host_of, known, query_values, segment};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Reads one value, for example with [`header`](super::header()).
///
/// In configuration files, write the function's name in [this module](super) and the argument.
///
/// ```
/// use tower_quota::key::{self, ValueKey};
///
/// let by: ValueKey = "header x-api-key".parse()?;
/// assert_eq!(by, key::header("x-api-key"));
/// assert_eq!(by.to_string(), "header x-api-key");
/// # Ok::<(), key::KeyTextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct ValueKey {
    scope: Name,
    pub(super) text: Name,
    place: KeyPlace,
}

impl ValueKey {
    /// Makes an extractor from its text, a word with an argument or without.
    fn new(text: impl AsRef<str>, place: KeyPlace) -> Self {
        // Stored counters depend on the scope, so never change the text.
        let text = text.as_ref().trim_end().to_owned();
        let (word, argument) = text.split_at(text.find(' ').unwrap_or(text.len()));
        let kind = match place {
            KeyPlace::Bearer => String::from("bearer token"),
            _ => word.replace('_', " "),
        };
        Self {
            scope: Name::from(kind + argument),
            text: Name::from(text),
            place,
        }
    }

    /// Returns the key of this decoded value.
    pub fn key_of(&self, value: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        match self.place {
            KeyPlace::Host => Key::owned(self.scope, host_of(value.as_ref()).into_owned()),
            _ => Key::owned(self.scope, value),
        }
    }
}

impl KeyExtractor for ValueKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let mut first: Option<SentValue<'r>> = None;
        let mut is_shared = false;
        self.place.each_value(head, &mut |value| match &first {
            // Your application might use another value, so conflicting requests share the empty key.
            Some(first) => is_shared |= *first != value,
            None => first = Some(value),
        });
        let first = first?;
        if is_shared {
            return Some(Key::new(self.scope, &[]));
        }
        match first? {
            empty if empty.is_empty() => None,
            Cow::Borrowed(bytes) => Some(Key::new(self.scope, bytes)),
            Cow::Owned(bytes) => Some(Key::owned(self.scope, bytes)),
        }
    }

    fn has_credentials(&self) -> bool {
        matches!(self.place, KeyPlace::Bearer | KeyPlace::BasicUser)
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        self.place.each_value(head, &mut |value| {
            if let Some(value) = value {
                visit(&Key::new(self.scope, &value));
            }
        });
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        Some(self.key_of(text)).filter(|key| !key.as_bytes().is_empty())
    }
}

pub(crate) fn is_conflict(key: &Key<'_>) -> bool {
    key.as_bytes().is_empty() && *key != Key::EVERYONE
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum KeyPlace {
    Header(HeaderName),
    Bearer,
    BasicUser,
    Cookie(Name),
    Query(Name),
    #[cfg(feature = "axum")]
    Route,
    #[cfg(feature = "axum")]
    PathParameter(Name),
    PathSegment(usize),
    Path,
    Host,
    Method,
    GrpcService,
    GrpcMethod,
    Metadata(HeaderName),
}

impl KeyPlace {
    fn each_value<'r>(&self, head: &RequestHead<'r>, visit: &mut dyn FnMut(SentValue<'r>)) {
        match self {
            Self::Header(name) => lines(head, name).for_each(|line| visit(Some(line.into()))),
            Self::Bearer => {
                credentials(head, "Bearer").for_each(|token| visit(token.map(Into::into)));
            }
            Self::BasicUser => {
                credentials(head, "Basic").for_each(|sent| visit(sent.and_then(user)));
            }
            Self::Cookie(name) => cookies(head, *name).for_each(|value| visit(Some(value))),
            Self::Query(name) => query_values(head, *name).for_each(|value| visit(Some(value))),
            #[cfg(feature = "axum")]
            Self::Route => visit(head.route_for_key().map(|route| route.as_bytes().into())),
            #[cfg(feature = "axum")]
            Self::PathParameter(name) => visit(matched_parameter(head, *name).map(decoded)),
            Self::PathSegment(index) => visit(segment(head, *index).map(decoded)),
            Self::Path => visit(Some(decoded(head.path()))),
            Self::Host => head.hosts().for_each(|host| visit(Some(host))),
            Self::Method => visit(Some(known(head.method()).as_bytes().into())),
            Self::GrpcService => visit(called(head).map(|(name, _)| name.as_bytes().into())),
            Self::GrpcMethod => visit(called(head).map(|(_, name)| name.as_bytes().into())),
            Self::Metadata(name) => metadata_values(head, name, visit),
        }
    }
}

/// Counts by a header, for example an API key, without surrounding spaces.
///
/// Different values [conflict](super). Limit by address too, because clients can make up values.
///
/// # Panics
/// Panics if `name` is invalid.
#[track_caller]
#[doc(alias = "api key")]
pub fn header(name: &str) -> ValueKey {
    header_key(valid_header(name))
}

/// Works like [`header`], but never panics.
///
/// # Errors
/// Returns an error if `name` is invalid.
pub fn try_header(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    Ok(header_key(HeaderName::from_bytes(name.as_bytes())?))
}

fn header_key(name: HeaderName) -> ValueKey {
    ValueKey::new(format!("header {name}"), KeyPlace::Header(name))
}

/// Counts by a cookie (RFC 6265), decoded and without quotes.
///
/// Set the cookie for one path only, because different values [conflict](super).
#[doc(alias = "session")]
pub fn cookie(name: impl Into<Name>) -> ValueKey {
    let name = name.into();
    ValueKey::new(format!("cookie {name}"), KeyPlace::Cookie(name))
}

/// Counts by the token in `Authorization: Bearer`, without verifying the token (RFC 6750).
///
/// If your tokens are renewed, use `jwt_claim` (feature `jwt`).
#[doc(alias = "access token")]
pub fn bearer() -> ValueKey {
    ValueKey::new("bearer", KeyPlace::Bearer)
}

/// Counts by the user in `Authorization: Basic`, ignoring the password (RFC 7617).
///
/// Protect accounts from password guessing with this key. Limit by address too, because other
/// clients can use up the quota. Unreadable or empty names are missing keys.
#[doc(alias = "login")]
pub fn basic_user() -> ValueKey {
    ValueKey::new("basic_user", KeyPlace::BasicUser)
}

/// Counts by a query parameter, for example an API key, decoded as a form.
pub fn query(name: impl Into<Name>) -> ValueKey {
    let name = name.into();
    ValueKey::new(format!("query {name}"), KeyPlace::Query(name))
}

/// Counts by the decoded [full path](RequestHead::path) without the query.
///
/// Prefer `route` (feature `axum`), or add the client by [`all`](super::all()), because clients can make up paths.
#[doc(alias = "url")]
pub fn path() -> ValueKey {
    ValueKey::new("path", KeyPlace::Path)
}

/// Counts by a decoded segment of the [full path](RequestHead::path).
///
/// Segment 1 of `/tenants/acme/users` is `acme`.
pub fn path_segment(index: usize) -> ValueKey {
    ValueKey::new(
        format!("path_segment {index}"),
        KeyPlace::PathSegment(index),
    )
}

/// Counts by the requested host, in lower case, without port and trailing dot.
///
/// Reads the request target (always in HTTP/2) or `Host`. Clients can make up hosts, unless your server accepts only
/// known hosts.
///
/// If your handlers use axum-extra's `Host`, which prefers `X-Forwarded-Host`, clients can show limits and handlers
/// different hosts.
#[doc(alias = "authority")]
#[doc(alias = "virtual host")]
pub fn host() -> ValueKey {
    ValueKey::new("host", KeyPlace::Host)
}

/// Counts by the method, like `GET` or `POST`.
///
/// Methods outside RFC 9110, except `PATCH`, share the counter of `other`.
#[doc(alias = "verb")]
pub fn method() -> ValueKey {
    ValueKey::new("method", KeyPlace::Method)
}

/// Counts by the called gRPC service, like `helloworld.Greeter`.
///
/// Like gRPC servers, the extractor ignores the content type. If your router serves other two-segment paths, add
/// [`when::grpc_service`](crate::when::grpc_service). Clients can make up services, so put the layer inside the routes.
pub fn grpc_service() -> ValueKey {
    ValueKey::new("grpc_service", KeyPlace::GrpcService)
}

/// Counts by the called gRPC method, like `helloworld.Greeter/SayHello`.
#[doc(alias = "rpc")]
pub fn grpc_method() -> ValueKey {
    ValueKey::new("grpc_method", KeyPlace::GrpcMethod)
}

/// Counts by gRPC metadata, like [`header`](super::header()).
///
/// If `name` ends in `-bin`, values are split at commas and decoded from base64.
///
/// # Panics
/// Panics if `name` is invalid.
#[track_caller]
pub fn metadata(name: &str) -> ValueKey {
    metadata_key(valid_header(name))
}

/// Works like [`metadata`], but never panics.
///
/// # Errors
/// Returns an error if `name` is invalid.
pub fn try_metadata(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    Ok(metadata_key(HeaderName::from_bytes(name.as_bytes())?))
}

fn metadata_key(name: HeaderName) -> ValueKey {
    ValueKey::new(format!("metadata {name}"), KeyPlace::Metadata(name))
}

/// Counts by axum's matched route, like `/users/{id}`, including `nest` prefixes.
///
/// Add the layer with `Router::layer` or `Router::route_layer`. The key is missing in fallbacks, outside a
/// `nest_service`, and in layers around an app. By default, a request without a route gets 400 instead of your 404.
/// Write `key::route().or(key::everyone())` to count such requests together.
#[doc(alias = "MatchedPath")]
#[doc(alias = "endpoint")]
#[cfg(feature = "axum")]
pub fn route() -> ValueKey {
    ValueKey::new("route", KeyPlace::Route)
}

/// Counts by a decoded parameter of axum's matched route.
///
/// For example, `rest` of `/{*rest}`. The key is missing without a [`route`].
#[cfg(feature = "axum")]
pub fn path_parameter(name: impl Into<Name>) -> ValueKey {
    let name = name.into();
    ValueKey::new(
        format!("path_parameter {name}"),
        KeyPlace::PathParameter(name),
    )
}
