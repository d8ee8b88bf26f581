//! Tests that the documented rights suffice, and that each right is needed.

use tower_quota_core::{Charge, Operation, Quota, Store};
use tower_quota_dev::{RedisCluster, RedisSentinel, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::common::{HOUR, check, options, user};

/// Creates a user with the documented rights and further rights, which must be documented too.
fn grant(server: &RedisServer, further: &str) {
    let docs = include_str!("../../src/lib.rs");
    let rights = docs
        .lines()
        .find_map(|line| line.strip_prefix("//! ACL SETUSER limiter "))
        .unwrap();
    assert!(
        further.starts_with('-') || docs.contains(&format!("`{further}`")) || further.is_empty(),
        "{further} is not documented"
    );
    let granted = server
        .command(&format!("ACL SETUSER limiter {rights} {further}"))
        .unwrap();
    assert!(granted.starts_with("+OK"), "{granted}");
}

/// Runs each operation once.
async fn each_operation(store: &RedisStore) {
    let ann = user("ann");
    let charge = Charge::new("hour", &HOUR, &ann);
    store.apply(Operation::Reset, &[charge]).await.unwrap();
    assert_eq!(check(store).await.unwrap(), 999);
    let mut taken = store.check(&[charge]).await.unwrap();
    let peeked = store.check(&[charge.cost(0)]).await.unwrap();
    assert_eq!(peeked.statuses()[0].remaining(), 998);
    let refunded = store
        .apply(taken.refund().unwrap(), &[charge])
        .await
        .unwrap();
    assert_eq!(refunded.statuses()[0].remaining(), 999);
    let quota = Quota::concurrent(9);
    let hold = [Charge::new("streams", &quota, &ann).cost(2)];
    let taken_at = store.check(&hold).await.unwrap().at();
    for operation in [
        Operation::Renew { taken_at },
        Operation::Peek,
        Operation::Refund { taken_at },
    ] {
        store.apply(operation, &hold).await.unwrap();
    }
}

// Managed services give their users only these rights.
#[tokio::test]
async fn user_without_admin_commands_may_decide() {
    let server = RedisServer::start();
    let rights = "on >password ~quota:4:* +@all -@admin -@dangerous";
    let granted = server
        .command(&format!("ACL SETUSER tenant {rights}"))
        .unwrap();
    assert!(granted.starts_with("+OK"), "{granted}");
    let store = options()
        .connect(&format!(
            "redis://tenant:password@127.0.0.1:{}/",
            server.port()
        ))
        .await
        .unwrap();
    each_operation(&store).await;
}

#[tokio::test]
async fn documented_rights_suffice_for_a_server() {
    let server = RedisServer::start();
    let address = format!("redis://limiter:password@127.0.0.1:{}", server.port());
    grant(&server, "");
    let store = options().connect(&format!("{address}/")).await.unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    let ann = user("ann");
    each_operation(&store).await;

    assert!(options().connect(&format!("{address}/3")).await.is_err());
    grant(&server, "+select");
    assert_eq!(
        check(&options().connect(&format!("{address}/3")).await.unwrap())
            .await
            .unwrap(),
        999
    );

    grant(&server, "+hello");
    let store = options()
        .connect(&format!("{address}/?protocol=resp3"))
        .await
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 998);

    let of_holds = [
        "del",
        "zadd",
        "zcard",
        "zcount",
        "zrange",
        "zrem",
        "zremrangebyscore",
        "zscore",
        "pexpire",
    ];
    for needed in of_holds {
        server
            .command(&format!("ACL SETUSER limiter -{needed}"))
            .unwrap();
        let connected = options().connect(&format!("{address}/")).await;
        assert!(connected.is_err(), "{needed}");
        server
            .command(&format!("ACL SETUSER limiter +{needed}"))
            .unwrap();
    }
    for needed in ["time", "mget", "psetex", "evalsha"] {
        server
            .command(&format!("ACL SETUSER limiter -{needed}"))
            .unwrap();
        let error = check(&store).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Refused { .. }) && !error.is_transient(),
            "{needed}: {error:?}"
        );
        // The constructor fails if the store could not decide.
        let connected = options().connect(&format!("{address}/")).await;
        assert!(connected.is_err(), "{needed}");
        server
            .command(&format!("ACL SETUSER limiter +{needed}"))
            .unwrap();
    }
    server.command("ACL SETUSER limiter -del").unwrap();
    let reset = [Charge::new("hour", &HOUR, &ann)];
    assert!(store.apply(Operation::Reset, &reset).await.is_err());
    assert!(options().connect(&format!("{address}/")).await.is_err());
    server.command("ACL SETUSER limiter +del").unwrap();

    let error = options()
        .prefix("other")
        .connect(&format!("{address}/"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }) && !error.is_transient(),
        "{error:?}"
    );
}

#[cfg(feature = "pool")]
#[tokio::test]
async fn documented_rights_suffice_behind_a_pool() {
    let server = RedisServer::start();
    grant(&server, "+unwatch +ping");
    let pool = deadpool_redis::Config::from_url(format!(
        "redis://limiter:password@127.0.0.1:{}/",
        server.port()
    ));
    let pool = pool
        .create_pool(Some(deadpool_redis::Runtime::Tokio1))
        .unwrap();
    // Return a connection to the pool first, so that the store gets a used one, which the pool
    // checks.
    drop(pool.get().await.unwrap());
    let store = options().pool(pool).unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    assert_eq!(check(&store).await.unwrap(), 998);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_rights_suffice_for_a_cluster() {
    let cluster = RedisCluster::start();
    (0..6).for_each(|node| grant(cluster.node(node), "+ping +cluster|slots"));
    let urls = cluster
        .urls()
        .into_iter()
        .map(|url| url.replace("redis://", "redis://limiter:password@"));
    let store = options().cluster(urls.clone()).await.unwrap();
    for i in 0..50 {
        let key = user(&format!("user {i}"));
        assert!(
            store
                .check(&[Charge::new("hour", &HOUR, &key)])
                .await
                .unwrap()
                .is_allowed()
        );
    }
    (0..6).for_each(|node| grant(cluster.node(node), "-del"));
    assert!(options().cluster(urls).await.is_err());
}

// The user of the sentinels has a single right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_rights_suffice_under_sentinels() {
    let group = RedisSentinel::start();
    (0..2).for_each(|server| grant(group.server(server), ""));
    let docs = include_str!("../../src/lib.rs");
    let rights = docs
        .lines()
        .find_map(|line| line.strip_prefix("//! ACL SETUSER finder "))
        .unwrap();
    (0..3).for_each(|sentinel| {
        group.tell_sentinel(sentinel, &format!("ACL SETUSER finder {rights}"))
    });
    let as_finder = |password: &str| -> Vec<String> {
        group
            .urls()
            .iter()
            .map(|url| url.replace("redis://", &format!("redis://finder:{password}@")))
            .collect()
    };
    let primary = format!("redis://limiter:password@{}/", RedisSentinel::MASTER_NAME);
    let store = options()
        .sentinel(as_finder("password"), &primary)
        .await
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);

    let error = options()
        .sentinel(as_finder("guess"), &primary)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
        "{error:?}"
    );
    let error = options()
        .sentinel(as_finder("password"), &primary.replace("password", "guess"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
        "{error:?}"
    );

    // The store finds the next primary with the same rights.
    group.fail_over();
    group.wait_for_promotion(1);
    while check(&store).await.is_err() {}
}
