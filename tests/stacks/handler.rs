//! The service behind every stack.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::channel::Channel;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tokio::sync::Notify;
use tower::Service;

/// The body of the handler's responses. It has a default, as many layers ask for.
pub(crate) type Payload = UnsyncBoxBody<Bytes, Infallible>;

/// A service that answers by path, for any request body.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    /// Notified to send the last frame of `/stream`.
    pub(crate) last_frame: Arc<Notify>,
}

impl<B> Service<Request<B>> for Handler
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Payload>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let last_frame = Arc::clone(&self.last_frame);
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/stream" => Response::new(stream(last_frame)),
                "/panic" => std::panic::resume_unwind(Box::new("a panic without its message")),
                "/never" => std::future::pending().await,
                "/fail" => reply(StatusCode::BAD_GATEWAY, Bytes::from_static(b"failed")),
                "/echo" => match request.into_body().collect().await {
                    Ok(body) => reply(StatusCode::OK, body.to_bytes()),
                    Err(_) => reply(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()),
                },
                "/long" => reply(StatusCode::OK, Bytes::from_static(&[b'x'; 1_000])),
                _ => reply(StatusCode::OK, Bytes::from_static(b"hello")),
            })
        })
    }
}

fn reply(status: StatusCode, body: Bytes) -> Response<Payload> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("x-handler", http::HeaderValue::from_static("reached"));
    response
}

/// Returns two frames; the last is sent only after `last_frame` is notified.
fn stream(last_frame: Arc<Notify>) -> Payload {
    let (mut sender, body) = Channel::new(1);
    tokio::spawn(async move {
        // The client may have disconnected.
        let _ = sender.send(Frame::data(Bytes::from_static(b"first"))).await;
        last_frame.notified().await;
        let _ = sender.send(Frame::data(Bytes::from_static(b"last"))).await;
    });
    body.boxed_unsync()
}
