//! Keeps the rules of a service in Consul, by a [`RuleStore`] of your own. A store for etcd or a database has the same six
//! methods.
//!
//! Run the example, with Consul in another terminal:
//!
//!     consul agent -dev
//!     ADMIN_TOKEN=an-example-token cargo run --release -p tower-quota-rules-in-consul --example rules_in_consul
//!
//! Set these variables:
//!
//! * `ADMIN_TOKEN`: the secret of the admin API, at least 16 bytes.
//! * `CONSUL`: the address of Consul, by default `http://127.0.0.1:8500`.
//! * `PORT`, `ADMIN_PORT`: where the service and the admin API listen. Port 0 means any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     tower-quota-admin = "0.1"
//!     tower-quota-live = { version = "0.1", features = ["axum"] }
//!     tower-quota-rules = "0.1"
//!     axum = "0.8"
//!     hyper = { version = "1", features = ["http1", "server"] }
//!     hyper-util = { version = "0.1", features = ["client-legacy", "http1", "service", "tokio"] }
//!     serde = "1"
//!     serde_json = "1"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "signal", "sync", "time"] }
//!     tracing-subscriber = "0.3"

mod serve_admin;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::AdminOptions;
use tower_quota_live::{
    KEPT_VERSIONS, LiveOptions, LiveRules, NewVersion, Reply, RuleStore, RuleStoreError,
    StoreState, Version, VersionInfo, WithoutRules,
};
use tower_quota_rules::Rules;

use crate::serve_admin::serve_admin;

/// The deadline of a call. No request of your clients waits for it.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long Consul waits for a change before it answers.
const WATCH: Duration = Duration::from_secs(60);
/// The longest answer that the store reads. Consul takes values of up to 512 kB.
const LONGEST: usize = 1 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let variable =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.into());
    let token = std::env::var("ADMIN_TOKEN")
        .map_err(|_| "set ADMIN_TOKEN to a secret of 16 bytes or more")?;

    let rules = ConsulRules::connect(&variable("CONSUL", "http://127.0.0.1:8500"), "orders");
    // Until you put the first rules, apply these limits.
    let fallback = Rules::parse("limits: [{ name: address, quota: 200/second, key: client_ip }]")?;
    // Consul keeps the documents. Blocks, overrides and audit records live in the memory of this instance, and
    // `/v1/health` says so. To share them, add `blocks_in(RedisRules::new(..)?)` to the options.
    let options = LiveOptions::new().without_rules(WithoutRules::Fallback(fallback));
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
    let live = LiveRules::start_shared(layer.handle(), rules, options).await?;
    let admin = AdminOptions::new().bearer_token("admin", token);
    let admin = tower_quota_admin::router(live.clone(), admin)?;

    let service = TcpListener::bind(format!("127.0.0.1:{}", variable("PORT", "3000"))).await?;
    let admins = TcpListener::bind(format!("127.0.0.1:{}", variable("ADMIN_PORT", "3001"))).await?;
    let admin_address = admins.local_addr()?;
    println!("listening on http://{}", service.local_addr()?);
    println!("admin on http://{admin_address}");
    println!(
        "try:  curl -H \"Authorization: Bearer $ADMIN_TOKEN\" -H 'If-None-Match: *' -H 'Content-Type: application/yaml' \
         -T ops/limits/rules.yaml http://{admin_address}/v1/rules"
    );
    tokio::spawn(serve_admin(admins, admin));
    let app = Router::new().fallback(async || "hello\n").layer(layer);
    axum::serve(
        service,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .with_graceful_shutdown(async {
        tokio::signal::ctrl_c().await.ok();
    })
    .await?;
    live.close(Duration::from_secs(1)).await;
    Ok(())
}

/// A store of documents in the key-value store of Consul.
///
/// Each version is a key `NAME/rules/NUMBER`, which never changes. The highest number is in force.
#[derive(Debug)]
struct ConsulRules {
    address: String,
    folder: String,
    client: Client<HttpConnector, Body>,
    changed: watch::Sender<()>,
}

/// The numbers of all versions in ascending order, and the index of Consul at which they last changed.
struct Numbers {
    index: u64,
    numbers: Vec<u64>,
}

impl ConsulRules {
    fn connect(address: &str, name: &str) -> Arc<Self> {
        let rules = Arc::new(Self {
            address: address.trim_end_matches('/').to_owned(),
            folder: format!("{name}/rules"),
            client: Client::builder(TokioExecutor::new()).build_http(),
            changed: watch::Sender::new(()),
        });
        tokio::spawn(announce(Arc::downgrade(&rules)));
        rules
    }

    /// Sends a request about a key of the folder. Returns the index of Consul with the body, which is `None` if there is no
    /// such key.
    async fn send(
        &self,
        method: Method,
        key: &str,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<(u64, Option<Bytes>), RuleStoreError> {
        let exchange = async {
            let uri = format!("{}/v1/kv/{}{key}", self.address, self.folder);
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .body(Body::from(body))?;
            let response = self.client.request(request).await?;
            let index = response.headers().get("x-consul-index");
            let index = index.and_then(|index| index.to_str().ok()?.parse().ok());
            let (index, status) = (index.unwrap_or(0), response.status());
            let body = to_bytes(Body::new(response.into_body()), LONGEST).await?;
            match status {
                StatusCode::OK => Ok((index, Some(body))),
                StatusCode::NOT_FOUND => Ok((index, None)),
                _ => Err(Box::<dyn Error + Send + Sync>::from(format!(
                    "status {status}"
                ))),
            }
        };
        let answer = timeout(deadline, exchange).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer in time".into()));
        answer.map_err(|error| RuleStoreError::unavailable(self.name(), error))
    }

    /// Returns the numbers of all versions. With an index, waits until Consul has a later one.
    async fn numbers(&self, after: Option<u64>) -> Result<Numbers, RuleStoreError> {
        let (query, deadline) = match after {
            Some(index) => {
                let query = format!("/?keys&index={index}&wait={}s", WATCH.as_secs());
                (query, WATCH + WATCH / 8)
            }
            None => ("/?keys".to_owned(), DEADLINE),
        };
        let (index, keys) = self.send(Method::GET, &query, Vec::new(), deadline).await?;
        let keys: Vec<String> = match keys {
            Some(keys) => self.read(&keys)?,
            None => Vec::new(),
        };
        let numbers = keys
            .iter()
            .filter_map(|key| key.rsplit('/').next()?.parse().ok());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(Numbers { index, numbers })
    }

    fn read<T: serde::de::DeserializeOwned>(&self, text: &[u8]) -> Result<T, RuleStoreError> {
        serde_json::from_slice(text).map_err(|error| RuleStoreError::unreadable(self.name(), error))
    }
}

/// Announces each change, as long as the store is used. Live rules poll too, so a lost announcement only costs time.
async fn announce(rules: Weak<ConsulRules>) {
    let mut index = None;
    while let Some(rules) = rules.upgrade() {
        let known = index;
        index = rules.numbers(index).await.ok().map(|numbers| numbers.index);
        if index != known {
            rules.changed.send_replace(());
        }
        if index.is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

impl RuleStore for ConsulRules {
    fn name(&self) -> String {
        format!("consul at {}", self.address)
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        Box::pin(async move {
            let Numbers { index, numbers } = self.numbers(None).await?;
            let mut state = StoreState::default();
            (state.revision, state.current) = (index, numbers.last().copied());
            Ok(Some(state).filter(|state| known != Some(state.revision)))
        })
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        Box::pin(async move {
            let key = format!("/{number}?raw");
            let (_, text) = self.send(Method::GET, &key, Vec::new(), DEADLINE).await?;
            text.map(|text| self.read(&text)).transpose()
        })
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        Box::pin(async move {
            let mut versions = Vec::new();
            for number in self
                .numbers(None)
                .await?
                .numbers
                .into_iter()
                .rev()
                .take(most)
            {
                versions.extend(self.version(number).await?.map(|version| version.info()));
            }
            Ok(versions)
        })
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version> {
        Box::pin(async move {
            let numbers = self.numbers(None).await?.numbers;
            let current = numbers.last().copied();
            if expected.is_some_and(|expected| expected != current.unwrap_or(0)) {
                return Err(RuleStoreError::Conflict { current });
            }
            let version = Version::new(current.unwrap_or(0).max(new.above) + 1, new);
            let text = serde_json::to_vec(&version).map_err(RuleStoreError::config)?;
            // Consul creates the key only if it does not exist, so one of two simultaneous writers wins.
            let key = format!("/{}?cas=0", version.number);
            let (_, is_created) = self.send(Method::PUT, &key, text, DEADLINE).await?;
            if is_created.is_none_or(|answer| answer.trim_ascii() != b"true") {
                let current = Some(version.number);
                return Err(RuleStoreError::Conflict { current });
            }
            let oldest = version.number.saturating_sub(KEPT_VERSIONS);
            for number in numbers.into_iter().filter(|number| *number <= oldest) {
                let key = format!("/{number}");
                self.send(Method::DELETE, &key, Vec::new(), DEADLINE)
                    .await?;
            }
            Ok(version)
        })
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
