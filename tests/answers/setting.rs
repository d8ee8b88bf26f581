//! A limited server with a failing or working store, called over sockets in three protocols.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, service_fn};
use tower_quota::{
    Decision, Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Protocol, Quota,
    RateLimitLayer, RefusalCache, Store, key,
    store::{Charge, Operation},
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
    /// Calls a server over a new connection.
    async fn call(self, address: SocketAddr) -> Response<Bytes> {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let answer = match self {
            Self::Grpc => {
                let request = Request::post(format!("http://{address}/"))
                    .header("content-type", "application/grpc");
                let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .unwrap();
                tokio::spawn(connection);
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                sender.send_request(request).await.unwrap()
            }
            Self::Http | Self::GrpcWeb => {
                let request = match self {
                    Self::Http => Request::get("/"),
                    _ => Request::post("/").header("content-type", "application/grpc-web"),
                };
                let (mut sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                sender.send_request(request).await.unwrap()
            }
        };
        let (mut parts, body) = answer.into_parts();
        for added_by_server in ["content-length", "date"] {
            parts.headers.remove(added_by_server);
        }
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }
}

/// A kind of answer.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    policy: Policy,
    /// The number of requests before the compared answer.
    earlier: usize,
    fails: bool,
}

impl Case {
    /// Returns every kind of answer. The table has a row for each.
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
            case(
                "unauthenticated",
                minute()
                    .by(key::bearer())
                    .when_missing(MissingKey::Unauthenticated),
                0,
            ),
            case("no peer address", minute().by(key::client_ip()), 0),
            Self {
                name: "too many limits",
                policy: (0..=Charge::MOST).fold(Policy::new(), |policy, number| {
                    let name = format!("limit-{number}");
                    policy.limit(Limit::new(name, Quota::per_minute(2)).when(|_| true))
                }),
                earlier: 0,
                fails: false,
            },
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

    /// Returns the answer to a request.
    pub(crate) async fn answer(&self, wire: Wire) -> Response<Bytes> {
        let clock = ManualClock::default();
        let store = FailingOrMemory {
            memory: MemoryStore::with_clock(10, clock.clone()),
            fails: self.fails,
        };
        // Disable the cache, because cached waits are measured by the machine's clock.
        let store = RefusalCache::new(store).max_age(Duration::ZERO);
        let layer = RateLimitLayer::with_refusal_cache(store, self.policy.clone())
            .local_store(MemoryStore::with_clock(10, clock))
            .protocol(Protocol::Both);
        let service = layer.layer(service_fn(|_: Request<Body>| {
            let own = Response::new(Body::from("the service's own"));
            ready(Ok::<_, Infallible>(own))
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Without `into_make_service_with_connect_info`, the server attaches no address.
        let app = Router::new().fallback_service(service);
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        for _ in 0..self.earlier {
            wire.call(address).await;
        }
        let answer = wire.call(address).await;
        server.abort();
        answer
    }
}

/// A store in memory that can fail every call.
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
