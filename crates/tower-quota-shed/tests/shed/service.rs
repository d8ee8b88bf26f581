//! A service whose requests end when the test says so.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer, Service, service_fn};
use tower_quota_shed::{LimitSettings, ResponseBody, ShedLayer, ShedService};

pub(crate) type Content = BoxBody<Bytes, &'static str>;

pub(crate) type Answer = Response<ResponseBody<Content>>;

/// A request in progress.
pub(crate) type Running = JoinHandle<Result<Answer, &'static str>>;

/// Answers the request, or fails the request when you drop it.
pub(crate) type Finish = oneshot::Sender<Response<Content>>;

/// Requests that [`start`] has started wait for their end. Other requests get an answer at once.
#[derive(Clone)]
pub(crate) struct Worker;

#[derive(Clone)]
struct Slow(Arc<Mutex<Option<oneshot::Receiver<Response<Content>>>>>);

impl Service<Request<()>> for Worker {
    type Response = Response<Content>;
    type Error = &'static str;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<()>) -> Self::Future {
        let Some(Slow(end)) = request.extensions_mut().remove() else {
            return Box::pin(ready(Ok(hello())));
        };
        let end = end.lock().unwrap().take().unwrap();
        Box::pin(async move { end.await.map_err(|_| "failed") })
    }
}

/// A body whose frames the test sends.
pub(crate) struct Feed(mpsc::UnboundedReceiver<Result<Frame<Bytes>, &'static str>>);

pub(crate) type Frames = mpsc::UnboundedSender<Result<Frame<Bytes>, &'static str>>;

impl Body for Feed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.0.poll_recv(cx)
    }
}

pub(crate) fn hello() -> Response<Content> {
    Response::new(content("hello"))
}

pub(crate) fn content(text: &'static str) -> Content {
    Full::from(text).map_err(|never| match never {}).boxed()
}

pub(crate) fn feed() -> (Frames, Content) {
    let (frames, feed) = mpsc::unbounded_channel();
    (frames, Feed(feed).boxed())
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

pub(crate) fn fixed(places: usize) -> ShedLayer {
    ShedLayer::new()
        .limit(LimitSettings::fixed(places))
        .unwrap()
}

pub(crate) fn around(layer: &ShedLayer) -> ShedService<Worker> {
    layer.layer(Worker)
}

#[expect(clippy::disallowed_methods, reason = "the time is paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Starts a request, which runs until the test ends it.
pub(crate) async fn start(
    service: &mut ShedService<Worker>,
    mut request: Request<()>,
) -> (Running, Finish) {
    let (finish, end) = oneshot::channel();
    request
        .extensions_mut()
        .insert(Slow(Arc::new(Mutex::new(Some(end)))));
    let running = tokio::spawn(service.call(request));
    tokio::task::yield_now().await;
    (running, finish)
}

/// Returns the status of a request that needs no time.
pub(crate) async fn ask(service: &mut ShedService<Worker>, request: Request<()>) -> u16 {
    service.call(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn closure_is_a_service() {
    let answer = |_: Request<()>| ready(Ok::<_, Infallible>(hello()));
    let mut service = ShedLayer::new().layer(service_fn(answer));
    assert_eq!(service.call(get("/")).await.unwrap().status(), 200);
}
