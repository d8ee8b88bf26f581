//! Servers that lease their counters, mostly from one real Redis.
//!
//! The limits are windows of a year, so no unit comes back during a test.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tonic::Code;
use tower_quota_core::{BoxStore, MemoryStore, Store};
use tower_quota_dev::RedisServer;
use tower_quota_dev::simulation::{self, Network, VirtualClock};
use tower_quota_lease::{LeaseOptions, Leased};
use tower_quota_redis::RedisStore;
use tower_quota_server::envoy::{EnvoyDoor, EnvoyOptions};
use tower_quota_server::messages::ratelimit::RateLimitResponse;
use tower_quota_server::store::{ServerStore, StoreError};
use tower_quota_testkit::{ManualClock, ModelStore};

use crate::support::{parsed, request, shown};

const LIMITS: &str = "
domain: d
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 5000, on_store_failure: error }
  - key: small
    rate_limit: { unit: year, requests_per_unit: 1000, on_store_failure: error }
  - key: log
    rate_limit: { unit: year, requests_per_unit: 1000, algorithm: sliding_log, on_store_failure: error }
  - key: tokens
    rate_limit: { unit: year, requests_per_unit: 1000, post_charge: true, on_store_failure: error }
  - key: quota
    quota_mode: true
    rate_limit: { unit: year, requests_per_unit: 1, on_store_failure: error }
  - key: allow
    rate_limit: { unit: year, requests_per_unit: 5000 }
  - key: refuse
    rate_limit: { unit: year, requests_per_unit: 5000, on_store_failure: refuse }
";
/// Longer than a test, so that no lease ends with unspent units while the machine stands still.
const LEASE: Duration = Duration::from_secs(60);
/// A long deadline, because a loaded machine answers late and these tests measure no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server without its port.
#[derive(Clone)]
struct Server {
    store: ServerStore,
    door: EnvoyDoor<BoxStore>,
}

impl Server {
    async fn start(redis: &RedisServer) -> Self {
        Self::with_deadline(redis, PATIENCE).await
    }

    async fn with_deadline(redis: &RedisServer, deadline: Duration) -> Self {
        let options = RedisStore::options().deadline(deadline);
        let store = ServerStore::open(Some(&redis.url()), options, Some(LEASE)).await;
        let store = store.unwrap();
        let mut options = EnvoyOptions::default();
        // Redis connects lazily.
        options.deadline = deadline;
        Self {
            door: EnvoyDoor::new(parsed(LIMITS), store.store().clone(), options),
            store,
        }
    }

    async fn ask(&self, descriptors: &[&str]) -> Result<RateLimitResponse, tonic::Status> {
        self.door.decide(&request("d", descriptors)).await
    }

    /// Returns whether the call is within its limits.
    async fn admits(&self, descriptors: &[&str]) -> bool {
        let response = self.ask(descriptors).await.unwrap();
        shown(&response)[0] == "OK"
    }

    /// Sends so many calls, and returns how many are within their limits.
    async fn admitted(&self, descriptors: &[&str], calls: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..calls {
            admitted += u64::from(self.admits(descriptors).await);
            // Calls for leases are tasks of the same runtime.
            tokio::task::yield_now().await;
        }
        admitted
    }

    /// Returns the units that the store has for a descriptor.
    async fn remaining(&self, descriptor: &str) -> u64 {
        let peek = format!("{descriptor} hits:0");
        let response = self.ask(&[&peek]).await.unwrap();
        response.statuses[0].limit_remaining.into()
    }

    fn by_lease(&self) -> u64 {
        self.store.leases().unwrap().by_lease
    }
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_share_a_limit() {
    let redis = RedisServer::start();
    let servers = [Server::start(&redis).await, Server::start(&redis).await];
    let tasks = servers.clone().map(|server| {
        tokio::spawn(async move { server.admitted(&["user=ann", "user=everyone"], 4_000).await })
    });
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    assert!(admitted <= 5_000, "{admitted} admitted");
    let mut lost = 0;
    for server in servers {
        assert!(server.by_lease() > 100, "{:?}", server.store.leases());
        assert!(server.store.close(PATIENCE).await);
        lost += server.store.leases().unwrap().units_lost;
    }
    // The closed servers have returned their leases.
    let rest = Server::start(&redis).await;
    for user in ["user=ann", "user=everyone"] {
        let units = admitted + rest.remaining(user).await;
        assert!(
            (5_000 - lost..=5_000).contains(&units),
            "{user}: {units} admitted or left, {lost} lost"
        );
    }
}

#[test]
fn killed_server_loses_its_leases_only() {
    let redis = RedisServer::start();
    let killed = runtime();
    let (admitted, leased) = killed.block_on(async {
        let server = Server::start(&redis).await;
        let admitted = server.admitted(&["user=ann"], 1_000).await;
        (admitted, server.store.leases().unwrap().units_leased)
    });
    assert_eq!(admitted, 1_000);
    assert!(leased > 0);
    killed.shutdown_background();
    let units = runtime().block_on(async {
        let server = Server::start(&redis).await;
        admitted + server.remaining("user=ann").await
    });
    assert!(
        (5_000 - leased..=5_000).contains(&units),
        "{units} admitted or left, {leased} leased"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_choose_the_answer_of_an_outage_of_leases() {
    let mut redis = RedisServer::start();
    let server = Server::with_deadline(&redis, Duration::from_secs(1)).await;
    while !matches!(server.ask(&["small=spent hits:1000"]).await, Ok(response) if shown(&response)[0] == "OVER")
    {
    }
    redis.kill();
    for (ask, expected) in [
        ("allow=new", vec!["OK", "OK"]),
        ("refuse=new", vec!["OVER", "OVER 0 1s"]),
        ("allow=new hits:0", vec!["OK", "OK"]),
        ("allow=new back:1", vec!["OK", "OK"]),
    ] {
        assert_eq!(shown(&server.ask(&[ask]).await.unwrap()), expected, "{ask}");
    }
    let status = server.ask(&["user=new"]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        !server.admits(&["small=spent"]).await,
        "a known refusal stays"
    );
    redis.start_again();
    let response = loop {
        if let Ok(response) = server.ask(&["user=new"]).await {
            break response;
        }
    };
    assert_eq!(shown(&response)[0], "OK");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_and_negative_leased_hits_are_exact() {
    let redis = RedisServer::start();
    let server = Server::start(&redis).await;
    assert_eq!(server.admitted(&["small=ann"], 600).await, 600);
    assert!(server.by_lease() > 0, "{:?}", server.store.leases());
    assert!(server.admits(&["small=ann back:100"]).await);
    assert_eq!(server.admitted(&["small=ann"], 1_000).await, 500);
    assert!(server.admits(&["small=ann hits:0"]).await, "no debt");
    assert!(server.admits(&["small=ann back:2"]).await);
    assert_eq!(server.admitted(&["small=ann"], 5).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_a_budget_pass_leases() {
    let redis = RedisServer::start();
    let servers = [Server::start(&redis).await, Server::start(&redis).await];
    // The call of the request and the report of its end, at two servers.
    for server in &servers {
        assert!(server.admits(&["tokens=ann hits:0"]).await);
    }
    assert!(servers[0].admits(&["tokens=ann hits:400"]).await);
    assert!(!servers[1].admits(&["tokens=ann hits:700"]).await);
    for server in &servers {
        assert!(!server.admits(&["tokens=ann hits:0"]).await, "in debt");
    }
    let stats = servers.map(|server| server.store.leases().unwrap().units_leased);
    assert_eq!(stats, [0, 0]);
}

// The two logs are leased at different instants, and a refund has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undone_call_gives_leased_units_back() {
    let redis = RedisServer::start();
    let server = Server::start(&redis).await;
    assert!(server.admits(&["quota=one", "quota=two"]).await);
    let mut taken = [0, 0];
    for _ in 0..4 {
        for (user, taken) in ["log=ann", "log=bob"].iter().zip(&mut taken) {
            *taken += server.admitted(&[user], 80).await;
        }
        for _ in 0..40 {
            let call = ["log=ann", "log=bob", "quota=one", "quota=two"];
            assert!(!server.admits(&call).await, "both quotas are exceeded");
        }
    }
    assert!(server.by_lease() > 0, "{:?}", server.store.leases());
    assert!(server.store.close(PATIENCE).await);
    assert_eq!(server.store.leases().unwrap().units_lost, 0);
    let rest = Server::start(&redis).await;
    for (user, taken) in ["log=ann", "log=bob"].iter().zip(taken) {
        assert_eq!(taken + rest.remaining(user).await, 1_000, "{user}");
    }
}

/// A server whose clock stands still, so the store charges leases and calls at the same instant.
struct StillServer {
    store: Leased<MemoryStore>,
    door: EnvoyDoor<Leased<MemoryStore>>,
}

impl StillServer {
    fn new() -> Self {
        let clock = ManualClock::default();
        let memory = MemoryStore::with_clock(10_000, clock.clone());
        let store = Leased::with_clock(memory, LeaseOptions::default(), clock);
        Self {
            door: EnvoyDoor::new(parsed(LIMITS), store.clone(), EnvoyOptions::default()),
            store,
        }
    }

    async fn ask(&self, descriptors: &[&str]) -> RateLimitResponse {
        let response = self.door.decide(&request("d", descriptors)).await.unwrap();
        tokio::task::yield_now().await;
        response
    }

    /// Sends a hundred calls, some of which leases decide.
    async fn admit_a_hundred(&self, descriptor: &str) {
        for _ in 0..100 {
            assert_eq!(shown(&self.ask(&[descriptor]).await)[0], "OK");
        }
        assert!(self.store.stats().by_lease > 0, "{:?}", self.store.stats());
    }

    /// Ends all leases, and returns the remaining units.
    async fn rest(&self, descriptor: &str) -> u32 {
        assert!(self.store.close(PATIENCE).await);
        let rest = self.ask(&[&format!("{descriptor} hits:0")]).await;
        rest.statuses[0].limit_remaining
    }
}

#[tokio::test(start_paused = true)]
async fn undone_call_keeps_out_of_leases() {
    let server = StillServer::new();
    server.admit_a_hundred("log=ann").await;
    server.ask(&["quota=one", "quota=two"]).await;
    for _ in 0..100 {
        let response = server.ask(&["log=ann", "quota=one", "quota=two"]).await;
        assert_eq!(shown(&response)[0], "OVER", "both quotas are exceeded");
    }
    assert_eq!(server.rest("log=ann").await, 900);
}

#[tokio::test(start_paused = true)]
async fn hits_given_back_keep_out_of_leases() {
    for (back, rest) in [(1, 901), (99, 999), (100, 1_000), (150, 1_000)] {
        let server = StillServer::new();
        server.admit_a_hundred("small=ann").await;
        server.ask(&[&format!("small=ann back:{back}")]).await;
        assert_eq!(server.rest("small=ann").await, rest, "{back} given back");
    }
}

#[tokio::test(start_paused = true)]
async fn client_stays_refused_while_leased_store_hangs() {
    let model = ModelStore::with_clock(ManualClock::default());
    let network = Network::new(Arc::new(model), 1);
    let leases = LeaseOptions::default();
    let store = Leased::with_clock(network.clone(), leases, VirtualClock::start());
    let store = BoxStore::new(store);
    let door = EnvoyDoor::new(parsed(LIMITS), store, EnvoyOptions::default());
    let ask = async |descriptors: &[&str]| {
        let response = door.decide(&request("d", descriptors)).await.unwrap();
        shown(&response)[0].clone()
    };
    assert_eq!(ask(&["allow=spent hits:5000"]).await, "OK");
    assert_eq!(ask(&["allow=spent"]).await, "OVER");
    network.cut(true);
    // The cached refusal is too old to use without a call.
    simulation::pass(Duration::from_secs(2)).await;
    assert_eq!(ask(&["allow=spent"]).await, "OVER");
    assert_eq!(ask(&["allow=new"]).await, "OK");
}

#[tokio::test]
async fn unusable_leases_name_the_flag() {
    let open = async |redis, lease| {
        let opened = ServerStore::open(redis, RedisStore::options(), Some(lease)).await;
        opened.unwrap_err()
    };
    let error = open(None, LEASE).await;
    assert!(matches!(error, StoreError::LeaseInMemory));
    assert!(error.to_string().contains("give --redis URL"), "{error}");
    let error = open(Some("redis://127.0.0.1"), Duration::from_millis(1)).await;
    assert!(
        error
            .to_string()
            .contains("1ms is too short: give 5ms or more"),
        "{error}"
    );
}
