//! Tests each layer alone, around the limited service and inside it, served by hyper.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use tower::buffer::BufferLayer;
use tower::limit::{
    ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer, RateLimitLayer as TowerRateLimitLayer,
};
use tower::load_shed::LoadShedLayer;
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer as TowerTimeoutLayer;
use tower::util::{
    BoxCloneService, BoxCloneSyncService, MapErrLayer, MapRequestLayer, MapResponseLayer,
};
use tower::{BoxError, Service, ServiceBuilder};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::map_response_body::MapResponseBodyLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::propagate_header::PropagateHeaderLayer;
use tower_http::request_id::SetRequestIdLayer;
use tower_http::sensitive_headers::SetSensitiveHeadersLayer;
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::timeout::{RequestBodyTimeoutLayer, ResponseBodyTimeoutLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use crate::handler::Handler;
use crate::limited::{Limited, limited_by, three_per_minute};
use crate::server::{
    Server, assert_admitted, assert_refused, assert_refused_head, next_frame, read,
};

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// A header that layers set.
pub(crate) const SET: HeaderName = HeaderName::from_static("x-set");

/// A maker of request ids that gives each request the same id.
#[derive(Clone)]
pub(crate) struct SameId;

impl tower_http::request_id::MakeRequestId for SameId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<tower_http::request_id::RequestId> {
        Some(tower_http::request_id::RequestId::new(
            HeaderValue::from_static("same"),
        ))
    }
}

/// A retry policy that never retries.
#[derive(Clone)]
pub(crate) struct Once;

impl<Q, R, E> Policy<Q, R, E> for Once {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut Q, _: &mut Result<R, E>) -> Option<Self::Future> {
        None
    }

    fn clone_request(&mut self, _: &Q) -> Option<Q> {
        None
    }
}

/// Asserts what must hold in every stack, with a store that decides at once and with a slow one.
pub(crate) async fn assert_holds<S, B>(stack: impl Fn(Limited, Handler) -> S)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    for is_slow in [false, true] {
        let handler = Handler::default();
        let server = Server::start(stack(
            limited_by(three_per_minute(), is_slow),
            handler.clone(),
        ))
        .await;

        // Each request is charged once, and its response is the handler's.
        let admitted = server.get("/").await;
        assert_admitted(&admitted, "2");
        assert_eq!(admitted.body(), "hello");
        let only_head = server.head("/").await;
        assert_admitted(&only_head, "1");
        assert_eq!(only_head.body(), "");

        // The first frame arrives before the last is made.
        let mut stream = server.open(Request::get("/stream"), b"").await;
        assert_admitted(&stream, "0");
        assert_eq!(next_frame(stream.body_mut()).await, "first");
        handler.last_frame.notify_one();
        assert_eq!(read(stream).await.body(), "last");

        assert_refused(&server.get("/").await);
        let only_head = server.head("/").await;
        assert_refused_head(&only_head);
        assert_eq!(only_head.body(), "");
    }
}

/// Declares the layers: for each a module with two tests, and its row in the documentation.
macro_rules! layers {
    ($($name:ident: $title:literal, $layer:expr;)*) => {
        /// The layers' names, as in the documentation.
        pub(crate) const TITLES: &[(&str, &str)] = &[$((stringify!($name), $title)),*];

        $(mod $name {
            use super::*;

            #[tokio::test]
            async fn inside() {
                assert_holds(|limited, handler| ServiceBuilder::new().layer(limited).layer($layer).service(handler)).await;
            }

            #[tokio::test]
            async fn outside() {
                assert_holds(|limited, handler| ServiceBuilder::new().layer($layer).layer(limited).service(handler)).await;
            }
        })*
    };
}

layers! {
    trace: "tower-http `TraceLayer`", TraceLayer::new_for_http();
    cors: "tower-http `CorsLayer`", CorsLayer::permissive();
    timeout: "tower-http `TimeoutLayer`", TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, LONG);
    request_body_timeout: "tower-http `RequestBodyTimeoutLayer`", RequestBodyTimeoutLayer::new(LONG);
    response_body_timeout: "tower-http `ResponseBodyTimeoutLayer`", ResponseBodyTimeoutLayer::new(LONG);
    compression: "tower-http `CompressionLayer`", CompressionLayer::new();
    decompression: "tower-http `DecompressionLayer`", DecompressionLayer::new();
    request_decompression: "tower-http `RequestDecompressionLayer`", RequestDecompressionLayer::new();
    request_body_limit: "tower-http `RequestBodyLimitLayer`", RequestBodyLimitLayer::new(1_000);
    catch_panic: "tower-http `CatchPanicLayer`", CatchPanicLayer::new();
    set_request_header: "tower-http `SetRequestHeaderLayer`",
        SetRequestHeaderLayer::overriding(SET, HeaderValue::from_static("set"));
    set_response_header: "tower-http `SetResponseHeaderLayer`",
        SetResponseHeaderLayer::overriding(SET, HeaderValue::from_static("set"));
    sensitive_headers: "tower-http `SetSensitiveHeadersLayer`", SetSensitiveHeadersLayer::new([SET]);
    set_request_id: "tower-http `SetRequestIdLayer`", SetRequestIdLayer::x_request_id(SameId);
    propagate_header: "tower-http `PropagateHeaderLayer`", PropagateHeaderLayer::new(SET);
    validate_request: "tower-http `ValidateRequestHeaderLayer`", ValidateRequestHeaderLayer::accept("text/html");
    normalize_path: "tower-http `NormalizePathLayer`", NormalizePathLayer::trim_trailing_slash();
    map_request_body: "tower-http `MapRequestBodyLayer`", MapRequestBodyLayer::new(axum::body::Body::new);
    map_response_body: "tower-http `MapResponseBodyLayer`", MapResponseBodyLayer::new(axum::body::Body::new);
    buffer: "tower `BufferLayer`", BufferLayer::new(8);
    concurrency_limit: "tower `ConcurrencyLimitLayer`", ConcurrencyLimitLayer::new(8);
    global_concurrency_limit: "tower `GlobalConcurrencyLimitLayer`", GlobalConcurrencyLimitLayer::new(8);
    load_shed: "tower `LoadShedLayer`", LoadShedLayer::new();
    tower_timeout: "tower `TimeoutLayer`", TowerTimeoutLayer::new(LONG);
    retry: "tower `RetryLayer`", RetryLayer::new(Once);
    buffered_rate_limit: "tower `RateLimitLayer` behind a `BufferLayer`",
        (BufferLayer::new(8), TowerRateLimitLayer::new(100, Duration::from_secs(1)));
    map_request: "tower `MapRequestLayer`", MapRequestLayer::new(|request| request);
    map_response: "tower `MapResponseLayer`", MapResponseLayer::new(|response| response);
    map_error: "tower `MapErrLayer`", MapErrLayer::new(BoxError::from);
    box_clone: "tower `BoxCloneService`", BoxCloneService::layer();
    box_clone_sync: "tower `BoxCloneSyncService`", BoxCloneSyncService::layer();
}
