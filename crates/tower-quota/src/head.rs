//! The part of a request that rate limits read.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};

/// A borrowed request without its body: what extractors, costs and conditions read.
///
/// It is not generic over the body, so neither are they.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    /// See [`RequestHead::holds_in_doubt`].
    holds_in_doubt: bool,
    /// See [`RequestHead::as_nested`].
    is_as_nested: bool,
    /// Set when the address of the peer is asked for and missing.
    lacks_peer: Option<&'a AtomicBool>,
}

impl<'a> RequestHead<'a> {
    /// Returns the head of a request, or of its [`Parts`].
    #[must_use]
    pub fn of<R: AsRequestHead>(request: &'a R) -> Self {
        request.as_head()
    }

    /// Returns the head of a request that was taken apart, as in axum's `FromRequestParts`.
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
            is_as_nested: false,
            lacks_peer: None,
        }
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// Returns the target as the layer sees it: inside axum's `nest` without the prefix, see [`path`](Self::path).
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// Returns the path that the client asked for, not decoded.
    ///
    /// Inside axum's `nest` it has the prefix, which [`uri`](Self::uri) has not: with the feature `axum` it is read from
    /// `OriginalUri`, which every axum `Router` adds to the request.
    #[must_use]
    pub fn path(&self) -> &'a str {
        if self.is_as_nested {
            return self.uri.path();
        }
        #[cfg(feature = "axum")]
        if let Some(axum::extract::OriginalUri(original)) = self.extensions.get() {
            return original.path();
        }
        self.uri.path()
    }

    /// Returns the version of HTTP.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the headers exactly as the client sent them: trust none that a client may forge.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns what the server and outer layers have attached: addresses, routes, authenticated users.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// Returns whether a condition that cannot be sure about this request holds of it.
    ///
    /// A request may send two values where a condition compares one. A block list must not miss the listed one of them,
    /// and an allow list must not believe it. So the caller says which way a condition errs: towards "yes" for block
    /// lists and for limits that apply, towards "no" for everything that sets a request free. [`when::not`] swaps it.
    ///
    /// [`when::not`]: crate::when::not
    pub(crate) const fn holds_in_doubt(&self) -> bool {
        self.holds_in_doubt
    }

    /// Makes conditions hold in doubt, or not.
    pub(crate) const fn in_doubt(self, holds: bool) -> Self {
        Self { holds_in_doubt: holds, ..self }
    }

    /// Returns whether the request is inside axum's `nest`, where the target has lost a prefix.
    pub(crate) fn is_nested(&self) -> bool {
        self.path() != self.uri.path()
    }

    /// Makes conditions hold that would if they saw the path inside the `nest`, or if a `Router` had matched their route:
    /// to find conditions that were written for that.
    pub(crate) const fn as_nested(self) -> Self {
        Self { is_as_nested: true, ..self }
    }

    #[cfg(feature = "axum")]
    pub(crate) const fn is_as_nested(&self) -> bool {
        self.is_as_nested
    }

    /// Returns whether no axum `Router` has seen the request yet. Without the feature `axum` that is not known.
    pub(crate) fn is_outside_router(&self) -> bool {
        #[cfg(feature = "axum")]
        return self.extensions.get::<axum::extract::OriginalUri>().is_none();
        #[cfg(not(feature = "axum"))]
        false
    }

    /// Notes here whether the address of the peer is asked for and missing.
    pub(crate) const fn noting_missing_peer(self, lacks_peer: &'a AtomicBool) -> Self {
        Self { lacks_peer: Some(lacks_peer), ..self }
    }

    /// Notes that the address of the peer is missing.
    pub(crate) fn note_missing_peer(&self) {
        if let Some(lacks_peer) = self.lacks_peer {
            lacks_peer.store(true, Ordering::Relaxed);
        }
    }
}

/// A request with or without its body.
pub trait AsRequestHead {
    /// Returns the head of the request.
    fn as_head(&self) -> RequestHead<'_>;
}

impl<B> AsRequestHead for Request<B> {
    fn as_head(&self) -> RequestHead<'_> {
        RequestHead {
            method: self.method(),
            uri: self.uri(),
            version: self.version(),
            headers: self.headers(),
            extensions: self.extensions(),
            holds_in_doubt: false,
            is_as_nested: false,
            lacks_peer: None,
        }
    }
}

impl AsRequestHead for Parts {
    fn as_head(&self) -> RequestHead<'_> {
        RequestHead::from_parts(self)
    }
}

impl fmt::Debug for RequestHead<'_> {
    /// Shows method and path. Queries and headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHead({} {})", self.method, self.uri.path())
    }
}
