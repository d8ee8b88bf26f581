//! The head of a request, as keys, conditions and costs read it.

mod path;
mod sample_context;

use core::fmt;
use std::borrow::Cow;

use http::header::{HOST, HeaderValue};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};
use tower_quota_core::{Lock, Name};

pub use self::sample_context::SampleContext;
use crate::key::{Mistake, host_of};

/// A borrowed request without its body, for extractors, costs and conditions.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    holds_in_doubt: bool,
    notes: Option<&'a Notes>,
    sample: Option<&'a SampleContext>,
}

impl<'a> RequestHead<'a> {
    /// Returns the head of a request.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            extensions: request.extensions(),
            holds_in_doubt: false,
            notes: None,
            sample: None,
        }
    }

    /// Returns the head of request parts, as in axum's `FromRequestParts`.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tower_quota::{RequestHead, key};
    ///
    /// fn client_of(parts: &mut Parts) -> Option<std::net::IpAddr> {
    ///     key::client_ip().address(&RequestHead::from_parts(parts))
    /// }
    /// # let _ = client_of;
    /// ```
    #[must_use]
    pub fn from_parts(parts: &'a Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            version: parts.version,
            headers: &parts.headers,
            extensions: &parts.extensions,
            holds_in_doubt: false,
            notes: None,
            sample: None,
        }
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// Returns the target, without the prefix of axum's `nest`. See [`path`](Self::path).
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// Returns the host in lower case, without port and trailing dot.
    ///
    /// The target comes before the first `Host` header. To compare all hosts, use [`when::host`](crate::when::host).
    #[must_use]
    pub fn host(&self) -> Option<Cow<'a, [u8]>> {
        self.hosts().next()
    }

    /// Returns whether a [host](Self::host) of this request matches.
    ///
    /// A limit or block list applies if any host matches. An [exemption](Self::holds_in_doubt) must match all hosts,
    /// and at least one.
    pub fn host_matches(&self, mut matches: impl FnMut(&[u8]) -> bool) -> bool {
        let mut hosts = self.hosts();
        if self.holds_in_doubt {
            hosts.any(|host| matches(&host))
        } else {
            hosts.next().is_some_and(|host| matches(&host)) && hosts.all(|host| matches(&host))
        }
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
        let target = self
            .uri
            .authority()
            .map(|authority| authority.as_str().as_bytes());
        target
            .into_iter()
            .chain(self.headers.get_all(HOST).iter().map(HeaderValue::as_bytes))
            .map(host_of)
    }

    /// Returns the version of HTTP.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the headers as the client sent them. A client can forge any header.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns values from the server and outer layers, such as addresses, routes and users.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// Returns the answer of a condition that is unsure, because a request sends two values.
    ///
    /// The answer is `true` for limits and block lists, and `false` for exemptions. [`when::not`](crate::when::not)
    /// inverts the answer.
    #[must_use]
    pub const fn holds_in_doubt(&self) -> bool {
        self.holds_in_doubt
    }

    /// Sets the [answer](Self::holds_in_doubt) of unsure conditions.
    #[must_use]
    pub const fn in_doubt(self, holds: bool) -> Self {
        Self {
            holds_in_doubt: holds,
            ..self
        }
    }

    /// Returns the route that axum has matched, or in explanations the route of a [sample](SampleContext).
    #[must_use]
    pub fn matched_route(&self) -> Option<&'a str> {
        #[cfg(feature = "axum")]
        if let Some(matched) = self.extensions.get::<axum::extract::MatchedPath>() {
            return Some(matched.as_str());
        }
        self.sample?.given_route()
    }

    /// Returns the route for a key, and notes if a sample lacks the route.
    #[cfg(feature = "axum")]
    pub(crate) fn route_for_key(&self) -> Option<&'a str> {
        let route = self.matched_route();
        if let (None, Some(sample)) = (route, self.sample) {
            sample.note("a key needs the route: send `route`");
        }
        route
    }

    /// Reads the [context](SampleContext) of a sample in the extensions, to explain the sample.
    ///
    /// [`explain`](crate::RateLimitHandle::explain) does the same. Other requests never read a context.
    #[must_use]
    pub fn of_sample(self) -> Self {
        Self {
            sample: self.extensions.get(),
            ..self
        }
    }

    pub(crate) const fn sample(&self) -> Option<&'a SampleContext> {
        self.sample
    }

    pub(crate) const fn with_notes(self, notes: Option<&'a Notes>) -> Self {
        Self { notes, ..self }
    }

    /// Adds a note, if there is one and the layer examines the request.
    #[inline]
    pub(crate) fn note(&self, note: impl FnOnce() -> Option<Note>) {
        if let Some(notes) = self.notes
            && let Some(note) = note()
        {
            notes.add(note);
        }
    }
}

impl fmt::Debug for RequestHead<'_> {
    /// Shows only method and path, because queries and headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHead({} {})", self.method, self.uri.path())
    }
}

/// Collects what keys and conditions find out about a request while the layer examines its first requests.
///
/// A request that is not examined has no notes.
#[derive(Default)]
pub(crate) struct Notes(Lock<Vec<Note>>);

/// A finding of a key or a condition.
pub(crate) enum Note {
    /// The key of this scope has read an address, with or without a mistake in the configuration.
    Address {
        scope: Name,
        mistake: Option<Mistake>,
    },
    /// The condition on this route has matched.
    #[cfg(feature = "axum")]
    RouteMatched { pattern: String },
    /// The condition on this route can match no request, for this reason.
    #[cfg(feature = "axum")]
    RouteMissed { pattern: String, reason: String },
}

impl Notes {
    pub(crate) fn add(&self, note: Note) {
        self.0.lock().push(note);
    }

    pub(crate) fn take(&self) -> Vec<Note> {
        core::mem::take(&mut *self.0.lock())
    }
}
