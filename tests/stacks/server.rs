//! Servers on free ports, by hyper alone, and their client.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceExt, service_fn};
use tower_http::decompression::Decompression;

/// A response that was read to its end.
pub(crate) type Reply = Response<Bytes>;

type BoxBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

/// A server and its client.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Server {
    /// Serves a stack by hyper. An error of the stack is a 503 with its text.
    pub(crate) async fn start<S, B>(stack: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // One type, so that the server is compiled once.
        let service = BoxCloneService::new(service_fn(move |request| {
            let response = stack.clone().oneshot(request);
            async move {
                Ok::<_, Infallible>(match response.await {
                    Ok(response) => response.map(|body| BoxBody::new(body.map_err(Into::into))),
                    Err(error) => unavailable(error.into()),
                })
            }
        }));
        let (listener, server) = Self::bind().await;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                tokio::spawn(async move {
                    Builder::new(TokioExecutor::new())
                        .serve_connection_with_upgrades(TokioIo::new(stream), service)
                        .await
                });
            }
        });
        server
    }

    /// Serves an app by axum.
    pub(crate) async fn of_app(app: Router) -> Self {
        let (listener, server) = Self::bind().await;
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    async fn bind() -> (TcpListener, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (
            listener,
            Self {
                address,
                client: Client::builder(TokioExecutor::new()).build_http(),
            },
        )
    }

    /// Sends a request; its path becomes a URI of this server. The body is not read.
    pub(crate) async fn open(
        &self,
        request: http::request::Builder,
        body: &'static [u8],
    ) -> Response<Incoming> {
        let mut request = request.body(Full::from(body)).unwrap();
        *request.uri_mut() = format!("http://{}{}", self.address, request.uri().path())
            .parse()
            .unwrap();
        within(self.client.request(request)).await.unwrap()
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Reply {
        read(self.open(request, b"").await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path)).await
    }

    pub(crate) async fn head(&self, path: &str) -> Reply {
        self.send(Request::head(path)).await
    }

    /// Returns the statuses of three requests and a fourth: all that a full limit admits, and a refusal.
    pub(crate) async fn statuses(&self, path: &str) -> [u16; 4] {
        let mut statuses = [0; 4];
        for status in &mut statuses {
            *status = self.get(path).await.status().as_u16();
        }
        statuses
    }

    /// Spends what is left, and returns the refusal of this request.
    pub(crate) async fn refused(&self, request: fn() -> http::request::Builder) -> Reply {
        for _ in 0..3 {
            self.get("/").await;
        }
        self.send(request()).await
    }
}

fn unavailable(error: BoxError) -> Response<BoxBody> {
    let text = Full::from(error.to_string()).map_err(|never| match never {});
    let mut response = Response::new(BoxBody::new(text));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Reads a body to its end.
pub(crate) async fn read<B>(response: Response<B>) -> Reply
where
    B: Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, within(body.collect()).await.unwrap().to_bytes())
}

/// Returns the next frame of a body.
pub(crate) async fn next_frame(body: &mut Incoming) -> Bytes {
    within(body.frame())
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap()
}

/// Serves the handler behind these layers, the outermost first.
macro_rules! serve {
    ($($layer:expr),+) => {
        $crate::server::Server::start(
            tower::ServiceBuilder::new()$(.layer($layer))+.service($crate::handler::Handler::default()),
        )
        .await
    };
}
pub(crate) use serve;

/// Undoes the coding of a compressed response.
pub(crate) async fn decoded(reply: Reply) -> Reply {
    assert_eq!(field(&reply, "content-encoding"), Some("gzip"));
    let mut reply = Some(reply.map(Full::new));
    let coded = service_fn(move |_: Request<()>| ready(Ok::<_, Infallible>(reply.take().unwrap())));
    read(
        Decompression::new(coded)
            .oneshot(Request::new(()))
            .await
            .unwrap(),
    )
    .await
}

/// Waits, up to a deadline.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .unwrap()
}

/// Returns a header field's value.
pub(crate) fn field<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

/// Asserts that a request was admitted, with this many left of three.
#[track_caller]
pub(crate) fn assert_admitted<B>(response: &Response<B>, left: &str) {
    assert_eq!(response.status(), 200);
    assert_fields(response, left);
}

/// Asserts that a response, whatever its status, says how many are left of three.
#[track_caller]
pub(crate) fn assert_fields<B>(response: &Response<B>, left: &str) {
    assert_eq!(field(response, "x-ratelimit-remaining"), Some(left));
    let policy = field(response, "ratelimit-policy").unwrap();
    assert!(
        policy.starts_with(r#""three_per_minute";q=3;w=60"#),
        "{policy}"
    );
    assert_eq!(field(response, "retry-after"), None);
}

/// Asserts that a response is the refusal of the three, whose body can be read.
#[track_caller]
pub(crate) fn assert_refused(reply: &Reply) {
    assert_refused_head(reply);
    let problem: serde_json::Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!(problem["violated-policies"][0], "three_per_minute");
}

/// Asserts that a response has the head of a refusal of the three.
#[track_caller]
pub(crate) fn assert_refused_head<B>(response: &Response<B>) {
    assert_eq!(response.status(), 429);
    assert_eq!(field(response, "retry-after"), Some("20"));
    assert_eq!(field(response, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(field(response, "x-handler"), None);
}
