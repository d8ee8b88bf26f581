//! The body of a response: the inner service's, or a refusal's.

use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a [`RateLimit`](crate::RateLimit)'s response: that of the inner service, passed through untouched, or
    /// the bytes of a refusal.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProjection]
    enum Kind<B> {
        Inner {
            #[pin]
            body: B,
        },
        Refusal {
            // Empty once sent.
            rest: Bytes,
        },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self { kind: Kind::Inner { body } }
    }

    pub(super) const fn refusal(bytes: Bytes) -> Self {
        Self { kind: Kind::Refusal { rest: bytes } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().kind.project() {
            KindProjection::Inner { body } => body.poll_frame(cx),
            KindProjection::Refusal { rest } if rest.is_empty() => Poll::Ready(None),
            KindProjection::Refusal { rest } => Poll::Ready(Some(Ok(Frame::data(core::mem::take(rest))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } => body.is_end_stream(),
            Kind::Refusal { rest } => rest.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } => body.size_hint(),
            Kind::Refusal { rest } => SizeHint::with_exact(rest.len() as u64),
        }
    }
}
