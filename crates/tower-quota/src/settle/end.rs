//! The end of a response.

use http::{HeaderMap, StatusCode};

/// The end of a response's body, for a [`Rule`](super::Rule) that waits for it.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEnd<'a> {
    pub(crate) status: StatusCode,
    pub(crate) bytes: u64,
    pub(crate) trailers: Option<&'a HeaderMap>,
    pub(crate) is_complete: bool,
}

impl<'a> ResponseEnd<'a> {
    /// Returns the status in the response's head.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the bytes of the body that the server accepted for sending.
    ///
    /// They are counted before any compression by an outer layer.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the trailers after the body, if any. Those of gRPC-Web are a part of the body.
    #[must_use]
    pub const fn trailers(&self) -> Option<&'a HeaderMap> {
        self.trailers
    }

    /// Returns whether the server accepted all of the body for sending.
    ///
    /// This does not mean that the client received it. If it is false, the body failed, or it was dropped because the
    /// client disconnected.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }
}
