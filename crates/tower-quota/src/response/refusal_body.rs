//! The body of a refusal.

use core::convert::Infallible;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// The body of a refusal: bytes, text, or any other body of bytes.
///
/// It is made [from](From) bytes and text, with the feature `axum` from axum's `Body`, and from other bodies by
/// [`RefusalBody::new`].
#[derive(Default)]
pub struct RefusalBody(Kind);

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    Full(Bytes),
    Boxed(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

impl RefusalBody {
    /// Makes the body of a refusal from any body of bytes. If that body fails, it ends there.
    #[must_use]
    pub fn new(body: impl Body<Data = Bytes> + Send + 'static) -> Self {
        Self(Kind::Boxed(Box::pin(EndAtError { body })))
    }

    /// Returns the length, if it is known.
    pub(super) fn exact_len(&self) -> Option<u64> {
        self.size_hint().exact()
    }
}

impl Body for RefusalBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = core::mem::take(bytes);
                self.0 = Kind::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Boxed(body) => body.size_hint(),
        }
    }
}

pin_project! {
    /// A body that ends when its inner body fails, because the service's error type cannot hold that error.
    struct EndAtError<B> {
        #[pin]
        body: B,
    }
}

impl<B: Body<Data = Bytes>> Body for EndAtError<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = ready!(self.project().body.poll_frame(cx));
        Poll::Ready(frame.and_then(Result::ok).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl From<Bytes> for RefusalBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }
}

impl From<()> for RefusalBody {
    /// Makes an empty body.
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
        Self::new(body)
    }
}

impl fmt::Debug for RefusalBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalBody")
            .field("size", &self.size_hint())
            .finish()
    }
}
