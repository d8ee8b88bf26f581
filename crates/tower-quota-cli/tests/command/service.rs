//! A service with an admin API, in this process.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use http::Request;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt;
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::{AdminOptions, router};
use tower_quota_rules::live::{LiveOptions, LiveRules, MemoryRules, RolloutCounts};

pub(crate) const TOKEN: &str = "a token of a test, 32 bytes long";

/// A service that is limited, and its admin API on a port.
pub(crate) struct TestService {
    runtime: Arc<Runtime>,
    app: Router,
    pub(crate) admin: String,
}

impl TestService {
    pub(crate) fn start() -> Self {
        let runtime =
            Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
        let (app, admin) = runtime.block_on(async {
            let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).count_busy_clients();
            let layer = layer.refusal_references("pod-7");
            let live = LiveRules::start(
                layer.handle(),
                MemoryRules::new(),
                LiveOptions::new().rollout_counts(RolloutCounts::new()),
            )
            .await;
            let options = AdminOptions::new().bearer_token("on-call", TOKEN).allow_showing_keys();
            let admin = router(live, options).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move {
                axum::serve(listener, admin.into_make_service_with_connect_info::<SocketAddr>()).await.unwrap();
            });
            (Router::new().route("/", get(|| async { "hello" })).layer(layer), format!("http://{address}"))
        });
        Self { runtime, app, admin }
    }

    /// Sends a request of a client, and returns the status of its response.
    pub(crate) fn ask(&self, api_key: &str) -> u16 {
        self.send(api_key).status().as_u16()
    }

    /// Sends a request of a client.
    pub(crate) fn send(&self, api_key: &str) -> Response {
        let request = Request::get("/").header("x-api-key", api_key).body(Body::empty()).unwrap();
        self.runtime.block_on(self.app.clone().oneshot(request)).unwrap()
    }
}
