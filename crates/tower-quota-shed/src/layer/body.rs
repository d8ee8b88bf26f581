use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_quota::response::RefusalBody;

use crate::gate::Place;

pin_project! {
    /// The unchanged body of the inner service, or the body of a refusal.
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
            // The place of the request, until the end of the body.
            place: Option<Place>,
        },
        Refusal {
            #[pin]
            body: RefusalBody,
        },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn inner(body: B, place: Option<Place>) -> Self {
        Self {
            kind: Kind::Inner { body, place },
        }
    }

    pub(super) const fn refusal(body: RefusalBody) -> Self {
        Self {
            kind: Kind::Refusal { body },
        }
    }
}

impl<B> Default for ResponseBody<B> {
    /// Makes an empty body, for any type of the inner body.
    fn default() -> Self {
        Self::refusal(RefusalBody::default())
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Inner { mut body, place } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                // Servers do not poll again after a last frame.
                if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
                    *place = None;
                }
                Poll::Ready(frame)
            }
            KindProjection::Refusal { body } => body
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body, .. } => body.is_end_stream(),
            Kind::Refusal { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body, .. } => body.size_hint(),
            Kind::Refusal { body } => body.size_hint(),
        }
    }
}
