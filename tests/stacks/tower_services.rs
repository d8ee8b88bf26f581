//! A service with the layers of tower, which delay, repeat and fail requests.

use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tower::buffer::BufferLayer;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::retry::{Policy, RetryLayer};
use tower::timeout::{TimeoutLayer, error::Elapsed};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_quota::{Limit, Quota, ResponseBody, key};

use crate::shared::{
    Limited, Place, assert_documented, in_each_place, remaining, three, until_idle, used, within,
};

const HOUR: Duration = Duration::from_secs(3_600);

type Service = BoxCloneService<Request<()>, Response<ResponseBody<Empty<Bytes>>>, BoxError>;

/// Repeats a failed request once.
#[derive(Clone)]
struct RetryOnce;

impl<B, E> Policy<Request<()>, Response<B>, E> for RetryOnce {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        request: &mut Request<()>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<Self::Future> {
        let is_failed = result
            .as_ref()
            .is_ok_and(|response| response.status() == 502);
        let is_first = request.extensions_mut().insert("sent before").is_none();
        (is_failed && is_first).then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request<()>) -> Option<Request<()>> {
        Some(request.clone())
    }
}

async fn handler(request: Request<()>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    match request.uri().path() {
        "/never" => pending().await,
        "/fail" => *response.status_mut() = StatusCode::BAD_GATEWAY,
        _ => {}
    }
    Ok(response)
}

/// Returns a service that handles one request at a time, and requires this permit.
fn service(place: Place, limit: Limited, permit: &GlobalConcurrencyLimitLayer) -> Service {
    let outer = (BufferLayer::new(8), TimeoutLayer::new(HOUR / 2));
    let inner = (
        RetryLayer::new(RetryOnce),
        LoadShedLayer::new(),
        permit.clone(),
    );
    let handler = service_fn(handler);
    match place {
        Place::Outside => BoxCloneService::new((limit, outer, inner).layer(handler)),
        Place::Between => BoxCloneService::new((outer, limit, inner).layer(handler)),
        Place::Inside => BoxCloneService::new((outer, inner, limit).layer(handler)),
    }
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

#[tokio::test]
async fn refusal_returns_inner_permit() {
    in_each_place(three(), async |place, limit| {
        let permit = GlobalConcurrencyLimitLayer::new(1);
        let service = service(place, limit, &permit);
        for (status, left) in [(200, 2), (200, 1), (200, 0), (429, 0)] {
            let response = service.clone().oneshot(get("/")).await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(remaining(response.headers()), left);
        }
        let other = permit.layer(service_fn(handler));
        within(other.oneshot(get("/"))).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn retries_count_as_documented() {
    let counted = in_each_place(three(), async |place, limit| {
        let permit = GlobalConcurrencyLimitLayer::new(1);
        let failed = service(place, limit.clone(), &permit)
            .oneshot(get("/fail"))
            .await;
        assert_eq!(failed.unwrap().status(), 502);
        ["", "once", "twice"][used(&limit).await]
    });
    assert_documented(
        "a failed request that is repeated once counts",
        counted.await,
    );
}

#[tokio::test(start_paused = true)]
async fn inner_error_passes_unchanged() {
    let used = in_each_place(three(), async |place, limit| {
        let permit = GlobalConcurrencyLimitLayer::new(1);
        let late = service(place, limit.clone(), &permit)
            .oneshot(get("/never"))
            .await;
        assert!(late.unwrap_err().is::<Elapsed>());
        used(&limit).await
    });
    assert_eq!(used.await, [0; 3], "abandoned requests are refunded");
}

#[tokio::test(start_paused = true)]
async fn waiting_request_blocks_others_as_documented() {
    let turns = Limit::new("turns", Quota::per_hour(1).burst(2).leaky_bucket())
        .by(key::from_fn("client", |head| {
            Some(head.uri().path().to_owned())
        }))
        .max_wait(2 * HOUR);
    let observed = in_each_place(turns, async |place, limit| {
        let service = service(place, limit, &GlobalConcurrencyLimitLayer::new(1));
        let send = |client| service.clone().oneshot(get(client));
        assert_eq!(send("/ann").await.unwrap().status(), 200);
        let mut waiting = Box::pin(send("/ann"));
        until_idle(&mut waiting).await;
        let other = send("/bob").await.is_ok();
        let bounded = waiting.await.is_err();
        // A wait that ended early gives its turn back. Otherwise the limit refuses this request.
        assert_eq!(send("/ann").await.is_err(), bounded);
        [(other, "proceed", "are shed"), (bounded, "yes", "no")]
            .map(|(is, yes, no)| if is { yes } else { no })
    });
    let [outside, between, inside] = observed.await;
    let titles = [
        "other requests, while one waits for its turn,",
        "the timeout bounds the wait",
    ];
    for (i, title) in titles.into_iter().enumerate() {
        assert_documented(title, [outside[i], between[i], inside[i]]);
    }
}
