use http::{HeaderMap, StatusCode};

/// The end of a response's body, for a [`Rule`](super::Rule).
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

    /// Returns the bytes of the body that the server accepted for sending, before outer compression.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the trailers after the body, if any. gRPC-Web has trailers in the body instead.
    #[must_use]
    pub const fn trailers(&self) -> Option<&'a HeaderMap> {
        self.trailers
    }

    /// Returns whether the server accepted the whole body for sending. The client may still miss the end.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }
}
