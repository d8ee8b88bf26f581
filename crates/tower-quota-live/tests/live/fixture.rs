//! Starts instances of a service with live rules.

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tempfile::TempDir;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Decision, MemoryStore, Policy, RateLimitLayer, ResponseBody, Store};
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    Block, BlockTarget, LiveOptions, LiveRules, MemoryRules, NewBlock, NewVersion, RedisRules,
    RuleStore, StartError, Version, WithoutRules,
};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// The longest wait of a test for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

type Answer = Response<ResponseBody<String>>;

/// Returns a document with two limits that change together. The second limit allows twice the units
/// of the first.
///
/// The windows of 300 days never end during a test.
pub(crate) fn document(units: u64) -> String {
    let twice = 2 * units;
    format!(
        "limits:\n  - {{ name: one, quota: {units} per 300 days fixed_window, key: header user }}\n  - {{ name: two, \
         quota: {twice} per 300 days fixed_window, key: header user }}\n"
    )
}

pub(crate) fn new(units: u64) -> NewVersion {
    NewVersion::new(document(units), "ann")
}

/// Returns a document of ann.
pub(crate) fn yaml(document: impl Into<String>) -> NewVersion {
    NewVersion::new(document, "ann")
}

/// Returns the rules of this name on a server.
pub(crate) fn redis_rules(server: &RedisServer, name: &str) -> RedisRules {
    RedisRules::new(&server.url(), name).unwrap()
}

/// Returns a folder and a file of rules in it.
pub(crate) fn rules_file(units: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    fs::write(&path, document(units)).unwrap();
    (folder, path)
}

pub(crate) fn broken() -> NewVersion {
    NewVersion::new("limits: [{ name: one, quota: lots }]", "mallory")
}

/// One instance of a service.
#[derive(Clone)]
pub(crate) struct Instance {
    pub(crate) live: LiveRules,
    service: BoxCloneSyncService<Request<()>, Answer, Infallible>,
}

impl Instance {
    pub(crate) async fn start(store: impl RuleStore, options: LiveOptions) -> Self {
        Self::counting(MemoryStore::new(), Arc::new(store), options).await
    }

    pub(crate) async fn in_memory() -> Self {
        Self::start(MemoryRules::new(), LiveOptions::new()).await
    }

    /// Starts an instance that counts in this store.
    pub(crate) async fn counting<S: Store>(
        counters: S,
        store: Arc<dyn RuleStore>,
        options: LiveOptions,
    ) -> Self {
        let options = options.without_rules(WithoutRules::Refuse);
        Self::try_counting(counters, store, options).await.unwrap()
    }

    /// Starts an instance like [`Self::counting`], and returns the error of a start without rules.
    pub(crate) async fn try_counting<S: Store>(
        counters: S,
        store: Arc<dyn RuleStore>,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        let layer = RateLimitLayer::new(counters, Policy::new())
            .attach_decision()
            .trace_decisions(0);
        let live = LiveRules::start_shared(layer.handle(), store, options).await?;
        let inner =
            service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(String::new())));
        Ok(Self {
            live,
            service: BoxCloneSyncService::new(layer.layer(inner)),
        })
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Answer {
        self.service
            .clone()
            .oneshot(request.body(()).unwrap())
            .await
            .unwrap()
    }

    pub(crate) async fn ask(&self, user: &str) -> StatusCode {
        self.send(Request::get("/").header("user", user))
            .await
            .status()
    }

    pub(crate) async fn until_status(&self, user: &str, status: u16) {
        let what = format!("{user} gets {status}");
        eventually(&what, async || self.ask(user).await == status).await;
    }

    pub(crate) async fn put(&self, version: NewVersion) -> Version {
        self.live.put(None, version).await.unwrap()
    }

    /// Blocks a client for a day.
    pub(crate) async fn block(&self, target: BlockTarget<'_>) -> Block {
        let block = NewBlock::block(DAY, "ops");
        self.live.block(target, block).await.unwrap()
    }

    /// Sends a request of this user, and returns the limits of its decision, in the order of the document.
    pub(crate) async fn limits(&self, user: &str) -> Vec<u64> {
        let answer = self.send(Request::get("/").header("user", user)).await;
        let decision = answer.extensions().get::<Decision>();
        decision
            .map(|decision| {
                decision
                    .statuses()
                    .iter()
                    .map(|status| status.limit)
                    .collect()
            })
            .unwrap_or_default()
    }

    pub(crate) fn number(&self) -> u64 {
        self.live
            .in_force()
            .map_or(0, |in_force| in_force.version.number)
    }

    pub(crate) async fn until_in_force(&self, number: u64) {
        eventually(&format!("version {number} is in force"), async || {
            self.number() == number
        })
        .await;
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            pause(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a condition"
)]
pub(crate) async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

#[expect(clippy::disallowed_methods, reason = "what a change takes is measured")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}
