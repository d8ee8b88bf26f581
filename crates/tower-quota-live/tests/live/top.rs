//! Tests the top clients of several instances, through a real Redis.

use std::time::Duration;

use tower_quota::TopWindow;
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, MemoryRules, SharedTop, TopList};

use crate::fixture::{Instance, eventually, new, now};

/// Starts an instance that admits one request of each user, and shares the top clients.
async fn instance(url: &str, name: &str, options: LiveOptions) -> Instance {
    let top = SharedTop::new(url, name)
        .unwrap()
        .every(Duration::from_millis(200));
    let instance = Instance::start(MemoryRules::new(), options.shared_top(top)).await;
    instance.put(new(1)).await;
    instance
}

async fn merged(instance: &Instance) -> Option<TopList> {
    let top = instance.live.top(false, TopWindow::Minute).await;
    top.instances.is_some().then_some(top)
}

/// Returns the numbers of the clients, the highest first.
fn numbers(top: &TopList) -> Vec<u64> {
    top.clients.iter().map(|client| client.at_least).collect()
}

#[tokio::test]
async fn instances_list_the_clients_of_all() {
    let server = RedisServer::start();
    let [one, other] = [
        instance(&server.url(), "all", LiveOptions::new()).await,
        instance(&server.url(), "all", LiveOptions::new()).await,
    ];
    for (instance, user, requests) in [(&one, "ann", 4), (&other, "ann", 3), (&other, "bob", 6)] {
        for _ in 0..requests {
            instance.ask(user).await;
        }
    }
    // Each instance has its own counters here, and admits only the first request of each user.
    for reader in [&one, &other] {
        let is_merged = async || {
            let Some(top) = merged(reader).await else {
                return false;
            };
            assert!(top.clients.iter().all(|client| client.key.is_none()));
            assert!(top.clients.iter().all(|client| client.limit == "one"));
            top.instances == Some(2) && numbers(&top) == [5, 5]
        };
        eventually("both are merged", is_merged).await;
    }
    let keys = server.command("KEYS quota:top:{all}:limited:1m:*").unwrap();
    for key in keys.lines().filter(|line| line.starts_with("quota:")) {
        let stored = server.command(&format!("ZRANGE {key} 0 -1")).unwrap();
        assert!(
            stored.contains("header user") && !stored.contains("ann"),
            "{stored}"
        );
        let expiry = server.command(&format!("PTTL {key}")).unwrap();
        assert!(!expiry.contains(":-1"), "the figures have an expiry");
    }
}

#[tokio::test]
async fn keys_are_shared_where_allowed() {
    let server = RedisServer::start();
    let one = instance(&server.url(), "shown", LiveOptions::new().readable_keys()).await;
    for _ in 0..3 {
        one.ask("ann").await;
    }
    let shows = async || {
        merged(&one).await.is_some_and(|top| {
            top.clients
                .iter()
                .any(|client| client.key.as_deref() == Some("ann"))
        })
    };
    eventually("the key is shown", shows).await;
}

#[tokio::test]
async fn dead_redis_leaves_own_list() {
    let mut server = RedisServer::start();
    let one = instance(&server.url(), "dead", LiveOptions::new()).await;
    server.kill();
    let begun = now();
    let top = one.live.top(false, TopWindow::Minute).await;
    assert_eq!(top.instances, None);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(
        one.ask("bob").await,
        http::StatusCode::OK,
        "requests do not depend on it"
    );
    assert!(one.live.close(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn ended_instance_is_forgotten() {
    let server = RedisServer::start();
    let [one, other] = [
        instance(&server.url(), "end", LiveOptions::new()).await,
        instance(&server.url(), "end", LiveOptions::new()).await,
    ];
    let has = async |instances| {
        merged(&one)
            .await
            .is_some_and(|top| top.instances == Some(instances))
    };
    eventually("both are there", async || {
        merged(&other).await.is_some() && has(2).await
    })
    .await;
    other.live.close(Duration::from_secs(5)).await;
    eventually("one is left", async || has(1).await).await;
}

#[tokio::test]
async fn instance_without_shared_top_has_none() {
    let instance = Instance::in_memory().await;
    assert!(merged(&instance).await.is_none());
    assert!(SharedTop::new("redis://127.0.0.1", "a name").is_err());
}

#[tokio::test]
async fn documented_rights_suffice() {
    let server = RedisServer::start();
    let guide = include_str!("../../../../docs/guide/admin.md");
    let rights = guide
        .lines()
        .find_map(|line| line.strip_prefix("ACL SETUSER top "))
        .unwrap();
    let granted = server
        .command(&format!("ACL SETUSER top {rights}"))
        .unwrap();
    assert!(granted.starts_with("+OK"), "{granted}");
    let url = format!("redis://top:password@127.0.0.1:{}/", server.port());
    let one = instance(&url, "rights", LiveOptions::new()).await;
    for _ in 0..3 {
        one.ask("ann").await;
    }
    eventually("it is listed", async || {
        merged(&one).await.is_some_and(|top| numbers(&top) == [2])
    })
    .await;
}
