//! How a response ended.

use http::{HeaderMap, StatusCode};

/// How a response's body ended: what a [`Rule`](super::Rule) that waited for it gets to know.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEnd<'a> {
    pub(crate) status: StatusCode,
    pub(crate) bytes: u64,
    pub(crate) trailers: Option<&'a HeaderMap>,
    pub(crate) is_complete: bool,
}

impl<'a> ResponseEnd<'a> {
    /// The status of its head.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Bytes of the body that the server took to send, before any compression by an outer layer.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The trailers after the body, if there were any. Those of gRPC-Web are a part of the body.
    #[must_use]
    pub const fn trailers(&self) -> Option<&'a HeaderMap> {
        self.trailers
    }

    /// Whether the server took all of the body, which does not mean that the client got it. Otherwise the body failed, or
    /// it was dropped, as when the client has gone away.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }
}
