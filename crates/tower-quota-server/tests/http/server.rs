//! Starts the HTTP doors on a free port, and a client.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tower_quota_core::{BoxStore, MemoryStore, Store};
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, NewVersion, WithoutRules};
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::http::{Gate, HttpOptions, read_rules};
use tower_quota_server::{auth, check};
use tower_quota_testkit::ManualClock;

use crate::openapi;

/// A deadline that only a failing store reaches.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

const ENVOY: &str = "
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: safe
    rate_limit: { unit: minute, requests_per_unit: 2, on_store_failure: error }
";

/// An instance of the doors.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) client: Client,
    pub(crate) live: LiveRules,
}

/// A clock, and a memory store that counts by it.
pub(crate) fn clocked() -> (ManualClock, BoxStore) {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(10_000, clock.clone());
    (clock, BoxStore::new(store))
}

impl Server {
    /// Starts an instance that counts in memory.
    pub(crate) async fn start(rules: &str) -> Self {
        Self::with(rules, HttpOptions::default()).await
    }

    pub(crate) async fn with(rules: &str, options: HttpOptions) -> Self {
        let (clock, store) = clocked();
        Self::clocked(rules, options, store, clock).await
    }

    pub(crate) async fn clocked(
        rules: &str,
        options: HttpOptions,
        store: BoxStore,
        clock: ManualClock,
    ) -> Self {
        Self::serving(
            rules,
            options,
            Gate::with_clock(store.clone(), DEADLINE, clock),
            store,
        )
        .await
    }

    /// Starts an instance over a store, with a deadline.
    pub(crate) async fn over(rules: &str, store: impl Store, deadline: Duration) -> Self {
        let store = BoxStore::new(store);
        let gate = Gate::new(store.clone(), deadline);
        Self::serving(rules, HttpOptions::default(), gate, store).await
    }

    async fn serving(rules: &str, options: HttpOptions, gate: Gate, store: BoxStore) -> Self {
        let (router, live) = doors(rules, &options, &gate, store).await;
        Self {
            address: serve(router).await,
            client: Client::new(),
            live,
        }
    }

    /// Replaces the limits.
    pub(crate) async fn replace(&self, rules: &str) {
        replace(&self.live, rules).await;
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.address))
    }

    /// Asks as a gateway does about `GET /` of a client.
    pub(crate) fn ask(&self, client: &str) -> RequestBuilder {
        self.ask_about("GET", "/", client)
    }

    pub(crate) fn ask_about(&self, method: &str, target: &str, client: &str) -> RequestBuilder {
        self.request(Method::GET, "/v1/auth")
            .header("X-Forwarded-Method", method)
            .header("X-Forwarded-Uri", target)
            .header("X-Forwarded-Host", "shop.example.com")
            .header("X-Forwarded-For", client)
    }

    /// Asks once for each client. Returns the statuses.
    pub(crate) async fn statuses(&self, clients: &[&str]) -> Vec<u16> {
        let mut statuses = Vec::new();
        for client in clients {
            statuses.push(status(self.ask(client)).await);
        }
        statuses
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path).json(body)
    }

    /// Calls a documented route. Returns the answer, which has the documented fields.
    pub(crate) async fn call(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.refused(path, body).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Calls a documented route. Returns the status and the answer.
    pub(crate) async fn refused(&self, path: &str, body: Value) -> (u16, Value) {
        let response = send(self.post(path, &body)).await;
        let status = response.status().as_u16();
        let answer = response.json().await.unwrap();
        openapi::check(path, status, &answer);
        (status, answer)
    }
}

/// Returns the doors over a store, with limits.
pub(crate) async fn doors(
    rules: &str,
    options: &HttpOptions,
    gate: &Gate,
    store: BoxStore,
) -> (Router, LiveRules) {
    let live = LiveOptions::new()
        .read_with(read_rules)
        .without_rules(WithoutRules::Refuse);
    let live = LiveRules::start(gate.handle(), MemoryRules::new(), live)
        .await
        .unwrap();
    let envoy = EnvoyConfig::parse([("shop.yaml", ENVOY)], false).unwrap();
    let envoy = EnvoyDoor::new(envoy, store, EnvoyOptions::default());
    let router = auth::router(gate, options)
        .merge(check::router(gate, options))
        .merge(check::json_router(envoy, options));
    replace(&live, rules).await;
    (router, live)
}

async fn replace(live: &LiveRules, rules: &str) {
    if let Err(error) = live.put(None, NewVersion::new(rules, "tests")).await {
        panic!("{error}");
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

pub(crate) async fn status(request: RequestBuilder) -> u16 {
    send(request).await.status().as_u16()
}

/// Returns the detail of a problem with this status.
pub(crate) async fn detail(request: RequestBuilder, status: u16) -> String {
    let response = send(request).await;
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert_eq!(response.status().as_u16(), status);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], status);
    problem["detail"].as_str().unwrap().to_owned()
}

pub(crate) async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://{address}")
}
