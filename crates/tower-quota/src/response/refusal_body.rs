use core::convert::Infallible;
use core::fmt;
use core::pin::Pin;
#[cfg(feature = "axum")]
use core::task::ready;
use core::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of a refusal.
///
/// Convert bytes, text, or axum's `Body` with [`From`].
pub struct RefusalBody(Kind);

enum Kind {
    Full(Bytes),
    /// A body of axum. The body ends at an error, because the service's error type cannot hold the
    /// error.
    #[cfg(feature = "axum")]
    Axum(axum::body::Body),
}

impl Default for RefusalBody {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl Body for RefusalBody {
    type Data = Bytes;
    type Error = Infallible;

    #[cfg_attr(
        not(feature = "axum"),
        expect(unused_variables, reason = "bytes are ready")
    )]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(core::mem::take(bytes))))),
            #[cfg(feature = "axum")]
            Kind::Axum(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(frame.and_then(Result::ok).map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            #[cfg(feature = "axum")]
            Kind::Axum(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            #[cfg(feature = "axum")]
            Kind::Axum(body) => body.size_hint(),
        }
    }
}

impl From<Bytes> for RefusalBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }
}

impl From<()> for RefusalBody {
    fn from((): ()) -> Self {
        Self::default()
    }
}

macro_rules! from_bytes {
    ($($source:ty),*) => {
        $(
            impl From<$source> for RefusalBody {
                fn from(source: $source) -> Self {
                    Bytes::from(source).into()
                }
            }
        )*
    };
}

from_bytes!(&'static str, &'static [u8], String, Vec<u8>);

#[cfg(feature = "axum")]
impl From<axum::body::Body> for RefusalBody {
    fn from(body: axum::body::Body) -> Self {
        Self(Kind::Axum(body))
    }
}

impl fmt::Debug for RefusalBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalBody")
            .field("size", &self.size_hint())
            .finish()
    }
}
