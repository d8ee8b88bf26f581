//! Starts an instance of a service with an admin API on its own port, and a client.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tower_quota::{MemoryStore, Policy, RateLimitLayer, Store};
use tower_quota_admin::{AdminOptions, router};
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, RuleStore, WithoutRules};

use crate::fields;

/// The token of the tests, and the name of its holder.
pub(crate) const TOKEN: &str = "the tests' own token";
pub(crate) const HOLDER: &str = "tests";
/// A timeout that only a broken test reaches. The default of ten seconds is too short for a large document on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Rules with a limit by API key, and a tier.
pub(crate) const RULES: &str = "\
defaults: { key: [header x-api-key, client_ip] }
limits:
  - { name: minute, quota: 5/minute }
tiers:
  pro: { limits: { minute: 50/minute } }
assign:
  - { key: \"pro_*\", tier: pro }
";

/// An instance, with a service and an admin API.
pub(crate) struct Instance {
    pub(crate) service: String,
    pub(crate) admin: String,
    pub(crate) client: Client,
}

impl Instance {
    /// Starts an instance with rules in memory.
    pub(crate) async fn start() -> Self {
        Self::with(MemoryRules::new(), options()).await
    }

    /// Starts an instance with rules in memory, and puts [`RULES`].
    pub(crate) async fn with_rules() -> Self {
        let instance = Self::start().await;
        let put = send(instance.put_rules(RULES).header("If-None-Match", "*")).await;
        assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
        instance
    }

    pub(crate) async fn with(store: impl RuleStore, options: AdminOptions) -> Self {
        Self::with_live_options(store, options, LiveOptions::new()).await
    }

    pub(crate) async fn with_live_options(
        store: impl RuleStore,
        options: AdminOptions,
        live: LiveOptions,
    ) -> Self {
        let counters = MemoryStore::new();
        let figures = counters.clone();
        let options = options.store_figures("memory", move || figures.stats());
        Self::counting(counters, store, options, live).await
    }

    /// Starts an instance that counts in this store.
    pub(crate) async fn counting<S: Store>(
        counters: S,
        store: impl RuleStore,
        options: AdminOptions,
        live: LiveOptions,
    ) -> Self {
        let layer = RateLimitLayer::new(counters, Policy::new()).count_busy_clients();
        let live_options = live.readable_keys().without_rules(WithoutRules::Refuse);
        let live = LiveRules::start(layer.handle(), store, live_options)
            .await
            .unwrap();
        let admin = router(live, options).unwrap();
        let service = Router::new()
            .route("/reports/{id}", get(async || "report"))
            .fallback(get(async || "hello"))
            .layer(layer);
        let [service, admin] = [serve(service).await, serve(admin).await];
        Self {
            service,
            admin,
            client: Client::new(),
        }
    }

    /// Starts a request to the admin API, with the token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.anonymous(method, path).bearer_auth(TOKEN)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// Starts a request to the admin API, without a token.
    pub(crate) fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.admin))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        let answer = response.json().await.unwrap();
        if path != "/v1/openapi.json" {
            fields::check("get", path, &answer);
        }
        answer
    }

    /// Returns the ETag of an answer.
    pub(crate) async fn tag(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.headers()["etag"].to_str().unwrap().to_owned()
    }

    /// Returns the number of the version in force.
    pub(crate) async fn number(&self) -> u64 {
        number(&self.tag("/v1/rules").await)
    }

    /// Starts a `PUT` of rules in YAML.
    pub(crate) fn put_rules(&self, rules: &str) -> RequestBuilder {
        let request = self
            .request(Method::PUT, "/v1/rules")
            .header("Content-Type", "application/yaml");
        request.body(rules.to_owned())
    }

    /// Returns the status of a request to the service by the holder of an API key.
    pub(crate) async fn ask(&self, key: &str) -> StatusCode {
        send(self.client.get(&self.service).header("x-api-key", key))
            .await
            .status()
    }

    /// Operates on a client, and returns its status.
    pub(crate) async fn client(&self, operation: &str, body: Value) -> Value {
        let path = format!("/v1/clients/{operation}");
        let request = self.request(Method::POST, &path).json(&body);
        let response = send(request).await;
        assert_eq!(response.status(), 200, "{path}");
        let answer = response.json().await.unwrap();
        fields::check("post", &path, &answer);
        answer
    }

    /// Removes a block.
    pub(crate) async fn unblock(&self, target: &str) -> Response {
        send(
            self.request(Method::POST, "/v1/blocks/remove")
                .json(&json!({ "target": target })),
        )
        .await
    }

    /// Blocks a client.
    pub(crate) async fn block(&self, target: &str) -> Value {
        let body = json!({ "target": target, "seconds": 60, "reason": "abuse" });
        let response = send(self.request(Method::PUT, "/v1/blocks").json(&body)).await;
        assert_eq!(response.status(), 200);
        let answer = response.json().await.unwrap();
        fields::check("put", "/v1/blocks", &answer);
        answer
    }
}

/// Returns a block or an override as lists have it, from the answer to its change.
pub(crate) fn listed(made: &Value) -> Value {
    let mut listed = made.clone();
    listed.as_object_mut().unwrap().remove("reach");
    listed
}

pub(crate) async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

/// Returns the number of a version by its entity tag, which is `"NUMBER-HASH"`.
pub(crate) fn number(tag: &str) -> u64 {
    let number = tag.trim_matches('"').split('-').next().unwrap();
    number.parse().unwrap()
}

pub(crate) fn options() -> AdminOptions {
    AdminOptions::new()
        .bearer_token(HOLDER, TOKEN)
        .timeout(TEST_TIMEOUT)
}

/// Serves on a free port, and returns the address.
pub(crate) async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://{address}")
}

/// Checks that a response is a problem of this type, and returns it.
pub(crate) async fn problem(response: Response, kind: tower_quota_admin::ProblemKind) -> Value {
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["type"], kind.type_address(), "{body}");
    assert_eq!(status.as_u16(), kind.status().as_u16());
    assert_eq!(body["status"], status.as_u16());
    fields::compare("Problem", fields::problem(), &body, &mut BTreeSet::new());
    body
}
