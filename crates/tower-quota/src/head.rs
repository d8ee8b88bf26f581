//! The part of a request that rate limits read.

use core::fmt;

use http::{Extensions, HeaderMap, Method, Request, Uri, Version};

/// A request without its body, borrowed: what extractors, costs and conditions see. It is not generic over the body, so
/// neither are they.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    /// The head of a request.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The target.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The version of HTTP.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The headers, exactly as the client sent them: believe none that a client may forge.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// What the server and outer layers have attached: addresses, routes, authenticated users.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }
}

impl fmt::Debug for RequestHead<'_> {
    /// Shows method and path. Queries and headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHead({} {})", self.method, self.uri.path())
    }
}
