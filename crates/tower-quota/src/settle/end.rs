use http::{HeaderMap, StatusCode};

/// The end of a response's body, for a [`Rule`](super::Rule).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResponseEnd<'a> {
    /// The status in the response's head.
    pub status: StatusCode,
    /// The bytes of the body that the server accepted for sending, before outer compression.
    pub bytes: u64,
    /// The trailers after the body, if any. gRPC-Web has trailers in the body instead.
    pub trailers: Option<&'a HeaderMap>,
    /// Whether the server accepted the whole body for sending. The client may still miss the end.
    pub is_complete: bool,
}
