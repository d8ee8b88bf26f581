use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::response::RefusalBody;
use crate::settle::Meter;

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
            meter: Option<Box<Meter>>,
        },
        Refusal {
            #[pin]
            body: RefusalBody,
        },
        // The body was cut off, because the units ended within the body.
        Cut { trailers: Option<HeaderMap> },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn inner(body: B, meter: Option<Box<Meter>>) -> Self {
        Self {
            kind: Kind::Inner { body, meter },
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
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut kind = self.project().kind;
        match kind.as_mut().project() {
            KindProjection::Inner { mut body, meter } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                let Some(open) = meter else {
                    return Poll::Ready(frame);
                };
                if let Some(fitting) = open.cut(frame.as_ref()) {
                    let trailers = open.cut_trailers();
                    let last = Ok(open.hold(Frame::data(fitting)));
                    open.pass(Some(&last), false);
                    kind.set(Kind::Cut { trailers });
                    return Poll::Ready(Some(last));
                }
                let frame = frame.map(|frame| frame.map(|frame| open.hold(frame)));
                if open.pass(frame.as_ref(), body.is_end_stream()) {
                    *meter = None;
                }
                Poll::Ready(frame)
            }
            KindProjection::Cut { trailers } => Poll::Ready(
                trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            ),
            KindProjection::Refusal { body } => body
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body, meter } => {
                let is_end = body.is_end_stream();
                if let (true, Some(meter)) = (is_end, meter) {
                    meter.end_is_known();
                }
                is_end
            }
            Kind::Cut { trailers } => trailers.is_none(),
            Kind::Refusal { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body, .. } => body.size_hint(),
            Kind::Cut { .. } => SizeHint::with_exact(0),
            Kind::Refusal { body } => body.size_hint(),
        }
    }
}
