//! A service behind a layer, asked in three protocols while its store is available or not.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{
    Charge, Decision, Limit, MemoryStore, MissingKey, OnStoreFailure, Operation, Policy, Protocol,
    Quota, RateLimitLayer, RefusalCache, Store, key,
};
use tower_quota_testkit::ManualClock;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Http,
    Grpc,
    GrpcWeb,
}

impl Wire {
    pub(crate) const ALL: [Self; 3] = [Self::Http, Self::Grpc, Self::GrpcWeb];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Grpc => "gRPC",
            Self::GrpcWeb => "gRPC-Web",
        }
    }

    fn request(self) -> Request<()> {
        let request = match self {
            Self::Http => Request::get("/"),
            Self::Grpc => Request::post("/")
                .version(Version::HTTP_2)
                .header("content-type", "application/grpc"),
            Self::GrpcWeb => Request::post("/").header("content-type", "application/grpc-web"),
        };
        request.body(()).unwrap()
    }
}

/// A kind of answer.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    policy: Policy,
    /// The number of requests before the one whose answer is compared.
    earlier: usize,
    fails: bool,
}

impl Case {
    /// Returns every kind of answer: one row of the table each.
    pub(crate) fn all() -> Vec<Self> {
        let minute = || Limit::new("minute", Quota::per_minute(2));
        let policy = |limit| Policy::new().limit(limit);
        let case = |name, limit, earlier| Self {
            name,
            policy: policy(limit),
            earlier,
            fails: false,
        };
        let unavailable = |name, choice| Self {
            name,
            policy: policy(minute().on_store_failure(choice)),
            earlier: 0,
            fails: true,
        };
        vec![
            case("allowed", minute(), 0),
            case(
                "wait",
                Limit::new("minute", Quota::per_minute(2).leaky_bucket()),
                1,
            ),
            case("refused", minute(), 2),
            case("never", minute().cost_with(|_| 3), 0),
            case(
                "key missing",
                minute()
                    .by(key::header("x-api-key"))
                    .when_missing(MissingKey::Refuse),
                0,
            ),
            Self {
                name: "blocked",
                policy: policy(minute()).block(|_| true),
                earlier: 0,
                fails: false,
            },
            unavailable("degraded: uncounted", OnStoreFailure::Allow),
            unavailable("degraded: counted here", OnStoreFailure::Local),
            unavailable("store unavailable", OnStoreFailure::Refuse),
        ]
    }

    /// Returns the answer to a request of this kind.
    pub(crate) async fn answer(&self, wire: Wire) -> Response<Bytes> {
        let clock = ManualClock::default();
        let store = FailingOrMemory {
            memory: MemoryStore::with_clock(10, clock.clone()),
            fails: self.fails,
        };
        // The cache would tell waits by the machine's clock.
        let store = RefusalCache::new(store).max_age(Duration::ZERO);
        let layer = RateLimitLayer::with_refusal_cache(store, self.policy.clone())
            .local_store(MemoryStore::with_clock(10, clock))
            .protocol(Protocol::Both);
        let service = layer.layer(service_fn(|_: Request<()>| {
            ready(Ok::<_, Infallible>(Response::new(Full::from(
                Bytes::from_static(b"the service's own"),
            ))))
        }));
        for _ in 0..self.earlier {
            service.clone().oneshot(wire.request()).await.unwrap();
        }
        let (parts, body) = service.oneshot(wire.request()).await.unwrap().into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }
}

/// A store in memory, or one that always fails.
struct FailingOrMemory {
    memory: MemoryStore,
    fails: bool,
}

impl Store for FailingOrMemory {
    type Error = io::Error;
    type Future = Ready<Result<Decision, io::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        if self.fails {
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        }
        let Ok(decision) = self.memory.apply(operation, charges).into_inner();
        ready(Ok(decision))
    }
}
