//! Tests a store that goes back to an earlier state, after a failover to a replica that lagged behind.

use std::time::Duration;

use http::StatusCode;
use tempfile::TempDir;
use tower_quota_dev::{FaultProxy, RedisServer};
use tower_quota_live::{
    Action, AuditRecord, Block, BlockTarget, FileRules, LiveOptions, NewBlock, NewVersion,
    RedisRules, RuleStore, Target,
};

use crate::fixture::{DAY, Instance, document, eventually, new, redis_rules, rules_file};
use crate::log::Log;

/// A primary and a replica, behind an address that leads to the primary.
struct Servers {
    primary: RedisServer,
    replica: RedisServer,
    address: FaultProxy,
}

impl Servers {
    fn start() -> Self {
        let primary = primary();
        let address = FaultProxy::to(primary.port());
        Self {
            replica: replica_of(&primary),
            primary,
            address,
        }
    }

    fn rules(&self) -> RedisRules {
        RedisRules::new(&self.address.url(), "back").unwrap()
    }

    /// Cuts the replica off, so that it misses the next changes.
    async fn cut_off(&self) {
        let revision = |server: &RedisServer| {
            server
                .command("HGET quota:rules:{back}:state revision")
                .unwrap()
        };
        eventually("the replica has all changes", async || {
            revision(&self.replica) == revision(&self.primary)
        })
        .await;
        self.replica.command("REPLICAOF 127.0.0.1 1").unwrap();
    }

    /// Sends clients to the replica, which is read-only.
    fn lead_to_replica(&self) {
        self.address.redirect(self.replica.port());
    }

    fn promote(&self) {
        self.replica.command("REPLICAOF NO ONE").unwrap();
    }

    fn fail_over(&self) {
        self.promote();
        self.lead_to_replica();
    }

    /// Continues with the former replica as the primary, and a new replica.
    fn next(self) -> Self {
        let primary = self.replica;
        Self {
            replica: replica_of(&primary),
            primary,
            address: self.address,
        }
    }
}

fn primary() -> RedisServer {
    RedisServer::start_with(&["--repl-diskless-sync-delay", "0"])
}

fn replica_of(primary: &RedisServer) -> RedisServer {
    let port = primary.port().to_string();
    RedisServer::start_with(&[
        "--replicaof",
        "127.0.0.1",
        &port,
        "--repl-diskless-sync-delay",
        "0",
    ])
}

fn the_fix(units: u64) -> NewVersion {
    NewVersion::new(document(units), "bob").comment("the fix")
}

async fn block(instance: &Instance, user: &str) -> Block {
    instance.block(BlockTarget::Text(user)).await
}

fn hash(block: &Block) -> &str {
    match &block.target {
        Target::Key { hash, .. } => hash,
        Target::Network(_) => "",
    }
}

async fn restored(instance: &Instance) -> Vec<AuditRecord> {
    let mut records = instance.live.audit(99).await.unwrap();
    records.retain(|record| record.what == Action::Restored);
    records
}

/// Waits until the instance has read the store that it is led to now.
async fn until_read(instance: &Instance) {
    eventually("the store is read", async || instance.live.refresh().await).await;
}

/// Waits until the instances have read the rules and the block of a user.
async fn until_known(instances: &[&Instance], user: &str) {
    for instance in instances {
        // Send no requests meanwhile, which would use up the quota of the user.
        eventually("the block is known", async || {
            // Without rules in force, every request gets 503. Blocks are taken before rules.
            instance.live.in_force().is_some() && !instance.live.blocks().is_empty()
        })
        .await;
        assert_eq!(instance.ask(user).await, StatusCode::FORBIDDEN);
        until_read(instance).await;
    }
}

#[tokio::test]
async fn newest_version_and_removals_survive_lagging_replica() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let servers = Servers::start();
    let one = Instance::start(servers.rules(), LiveOptions::new()).await;
    let other = Instance::start(servers.rules(), LiveOptions::new()).await;
    one.put(new(5)).await;
    one.put(new(6)).await;
    let old = block(&one, "old").await;
    until_known(&[&one, &other], "old").await;
    servers.cut_off().await;
    one.put(the_fix(7)).await;
    one.live.unblock(&old.id, "ops").await.unwrap();
    let recent = block(&one, "recent").await;
    for instance in [&one, &other] {
        instance.until_in_force(3).await;
        instance.until_status("old", 200).await;
        instance.until_status("recent", 403).await;
    }

    servers.fail_over();
    for _ in 0..3 {
        for instance in [&one, &other] {
            until_read(instance).await;
            assert_eq!(instance.number(), 3);
            assert_eq!(instance.limits("ann").await, [7, 14]);
            assert_eq!(instance.ask("old").await, StatusCode::OK);
            assert_eq!(instance.ask("recent").await, StatusCode::FORBIDDEN);
            assert!(instance.live.state().is_healthy());
        }
    }
    let history = one.live.history(9).await.unwrap();
    assert_eq!((history[0].number, &*history[0].comment), (3, "the fix"));
    let stored = one.live.stored().await.unwrap();
    assert_eq!(stored.current, Some(3));
    let blocks: Vec<&str> = stored.blocks.changed.values().flatten().map(hash).collect();
    assert_eq!(blocks, [hash(&recent)]);

    // The log, the metric of audit records and the audit log say it once for all instances.
    let said = log.lines("the store went back from version 3 to version 2");
    assert_eq!(said.len(), 1, "{said:?}");
    let records = restored(&other).await;
    let versions = |record: &AuditRecord| (record.before.clone(), record.after.clone());
    assert_eq!(
        records.iter().map(versions).collect::<Vec<_>>(),
        [(Some("version 2".into()), Some("version 3".into()))]
    );
    assert!(records[0].comment.contains("bob"), "{}", records[0].comment);
}

#[tokio::test]
async fn blocks_next_to_files_survive_lagging_replica() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let (servers, (_folder, path)) = (Servers::start(), rules_file(5));
    let start = async || {
        let options = LiveOptions::new().blocks_in(servers.rules());
        Instance::start(FileRules::new(&path).unwrap(), options).await
    };
    let (one, other) = (start().await, start().await);
    let old = block(&one, "old").await;
    until_known(&[&one, &other], "old").await;
    servers.cut_off().await;
    one.live.unblock(&old.id, "ops").await.unwrap();
    let recent = block(&one, "recent").await;
    for instance in [&one, &other] {
        instance.until_status("old", 200).await;
        instance.until_status("recent", 403).await;
    }

    servers.fail_over();
    for _ in 0..3 {
        for instance in [&one, &other] {
            until_read(instance).await;
            assert_eq!(instance.ask("old").await, StatusCode::OK);
            assert_eq!(instance.ask("recent").await, StatusCode::FORBIDDEN);
            assert!(instance.live.state().is_healthy());
        }
    }
    let stored = servers.rules().state(None).await.unwrap().unwrap();
    let blocks: Vec<&str> = stored.blocks.changed.values().flatten().map(hash).collect();
    assert_eq!(blocks, [hash(&recent)]);
    let said = log.lines("the store has lost changes of blocks");
    assert_eq!(said.len(), 1, "{said:?}");
    let records = restored(&other).await;
    assert_eq!(records.len(), 1, "{records:?}");
    let mut changed = [&*old.id, &*recent.id];
    changed.sort_unstable();
    let expected = format!("changes of blocks: {}", changed.join(", "));
    assert_eq!(records[0].comment, expected);
}

#[tokio::test]
async fn second_failover_loses_no_version() {
    let mut servers = Servers::start();
    let one = Instance::start(servers.rules(), LiveOptions::new()).await;
    let other = Instance::start(servers.rules(), LiveOptions::new()).await;
    one.put(new(5)).await;
    for number in [2, 3] {
        servers.cut_off().await;
        let put = one.put(the_fix(number + 4)).await;
        assert_eq!(put.number, number);
        let blocked = format!("blocked {number}");
        block(&one, &blocked).await;
        other.until_in_force(number).await;
        other.until_status(&blocked, 403).await;
        servers.fail_over();
        for instance in [&one, &other] {
            until_read(instance).await;
            assert_eq!(instance.number(), number);
            assert_eq!(instance.ask(&blocked).await, StatusCode::FORBIDDEN);
        }
        servers = servers.next();
    }
    assert_eq!(restored(&one).await.len(), 2);
    assert_eq!(one.put(new(9)).await.number, 4);
    other.until_in_force(4).await;
}

fn copying(folder: &TempDir, name: &str) -> LiveOptions {
    LiveOptions::new().local_copy(folder.path().join(name))
}

async fn end(instance: Instance) {
    assert!(instance.live.refresh().await);
    assert!(instance.live.close(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn instance_that_was_down_takes_newest_version() {
    let (servers, folder) = (Servers::start(), tempfile::tempdir().unwrap());
    let one = Instance::start(servers.rules(), LiveOptions::new()).await;
    let other = Instance::start(servers.rules(), copying(&folder, "other")).await;
    one.put(new(5)).await;
    let old = block(&one, "old").await;
    other.until_in_force(1).await;
    until_known(&[&one, &other], "old").await;
    end(other).await;
    servers.cut_off().await;
    one.put(the_fix(6)).await;
    one.live.unblock(&old.id, "ops").await.unwrap();
    servers.fail_over();
    until_read(&one).await;

    let other = Instance::start(servers.rules(), copying(&folder, "other")).await;
    for instance in [&one, &other] {
        assert_eq!(instance.number(), 2);
        assert_eq!(instance.ask("old").await, StatusCode::OK);
    }
    assert_eq!(restored(&one).await.len(), 1);
}

#[tokio::test]
async fn only_holder_of_newest_version_brings_it_back() {
    let (servers, folder) = (Servers::start(), tempfile::tempdir().unwrap());
    let one = Instance::start(servers.rules(), copying(&folder, "one")).await;
    one.put(new(5)).await;
    let old = block(&one, "old").await;
    servers.cut_off().await;
    one.put(the_fix(6)).await;
    one.live.unblock(&old.id, "ops").await.unwrap();
    end(one).await;
    servers.fail_over();
    let other = Instance::start(servers.rules(), LiveOptions::new()).await;
    assert_eq!(other.number(), 1);
    // A change after the failover stays.
    block(&other, "recent").await;

    let one = Instance::start(servers.rules(), copying(&folder, "one")).await;
    other.until_in_force(2).await;
    other.until_status("old", 200).await;
    for instance in [&one, &other] {
        assert_eq!(instance.number(), 2);
        assert_eq!(instance.ask("old").await, StatusCode::OK);
        assert_eq!(instance.ask("recent").await, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn health_names_both_versions_until_store_takes_changes() {
    let servers = Servers::start();
    let one = Instance::start(servers.rules(), LiveOptions::new()).await;
    one.put(new(5)).await;
    servers.cut_off().await;
    one.put(the_fix(6)).await;

    servers.lead_to_replica();
    eventually("the instance has a problem", async || {
        let state = one.live.state();
        let error = state.last_error.clone().unwrap_or_default();
        !state.is_healthy() && error.contains("the store went back from version 2 to version 1")
    })
    .await;
    assert_eq!(one.limits("ann").await, [6, 12]);

    servers.promote();
    eventually("the store has the newest version", async || {
        one.live.state().is_healthy() && one.live.stored().await.unwrap().current == Some(2)
    })
    .await;
}

#[tokio::test]
async fn documents_put_after_failover_stay() {
    let servers = Servers::start();
    let options = LiveOptions::new().poll_every(Duration::from_secs(600));
    let one = Instance::start(servers.rules(), options).await;
    one.put(new(5)).await;
    servers.cut_off().await;
    one.put(new(6)).await;
    servers.promote();
    // An operator changes the store that lags, before an instance reads it.
    let direct = RedisRules::new(&servers.replica.url(), "back").unwrap();
    for units in [7, 8] {
        direct.put(None, new(units)).await.unwrap();
    }
    servers.lead_to_replica();
    one.until_in_force(3).await;
    assert_eq!(one.limits("ann").await, [8, 16]);
    assert_eq!(restored(&one).await.len(), 0);
}

/// Returns the ids of the stored blocks.
async fn stored_ids(store: &RedisRules) -> Vec<String> {
    let state = store.state(None).await.unwrap().unwrap();
    let blocks = state.blocks.changed.into_values().flatten();
    blocks.map(|block| block.id).collect()
}

#[tokio::test]
async fn copy_of_another_name_is_not_used() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let rules = |name| redis_rules(&server, name);
    let production = Instance::start(rules("production"), LiveOptions::new()).await;
    production.put(new(5)).await;
    let blocked = block(&production, "blocked").await;
    let staging = Instance::start(rules("staging"), copying(&folder, "copy")).await;
    for units in [6, 7, 8] {
        staging.put(new(units)).await;
    }
    block(&staging, "tested").await;
    end(staging).await;

    let late = Instance::start(rules("production"), copying(&folder, "copy")).await;
    until_read(&production).await;
    for instance in [&production, &late] {
        assert_eq!(instance.limits("ann").await, [5, 10]);
        assert_eq!(instance.ask("blocked").await, StatusCode::FORBIDDEN);
        assert_eq!(instance.ask("tested").await, StatusCode::OK);
    }
    assert_eq!(stored_ids(&rules("production")).await, [blocked.id]);
    assert_eq!(restored(&production).await.len(), 0);
    let said = log.lines("the local copy of the rules cannot be used");
    assert!(said.concat().contains("rules staging"), "{said:?}");
}

#[tokio::test]
async fn another_history_is_taken_as_it_is() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let [server, other] = [RedisServer::start(), RedisServer::start()];
    let of_other = redis_rules(&other, "back");
    let direct = Instance::start(redis_rules(&other, "back"), LiveOptions::new()).await;
    direct.put(new(5)).await;
    let blocked = block(&direct, "blocked").await;
    let address = FaultProxy::to(server.port());
    let (folder, rules) = (tempfile::tempdir().unwrap(), || {
        RedisRules::new(&address.url(), "back").unwrap()
    });
    let one = Instance::start(rules(), copying(&folder, "one")).await;
    let restarted = Instance::start(rules(), copying(&folder, "restarted")).await;
    for units in [6, 7, 8] {
        one.put(new(units)).await;
    }
    block(&one, "tested").await;
    restarted.until_in_force(3).await;
    restarted.until_status("tested", 403).await;
    until_read(&one).await;
    end(restarted).await;

    address.redirect(other.port());
    address.cut();
    one.until_in_force(1).await;
    let restarted = Instance::start(rules(), copying(&folder, "restarted")).await;
    for instance in [&one, &restarted] {
        until_read(instance).await;
        assert_eq!(instance.limits("ann").await, [5, 10]);
        assert_eq!(instance.ask("blocked").await, StatusCode::FORBIDDEN);
        assert_eq!(instance.ask("tested").await, StatusCode::OK);
    }
    assert_eq!(stored_ids(&of_other).await, [blocked.id]);
    assert_eq!(restored(&one).await.len(), 0);
    let said = log.lines("the store has another history");
    assert_eq!(said.len(), 2, "{said:?}");
}

#[tokio::test]
async fn blocks_next_to_files_keep_their_history() {
    let [server, other] = [RedisServer::start(), RedisServer::start()];
    let (_folder, path) = rules_file(5);
    let (copies, of_other) = (tempfile::tempdir().unwrap(), redis_rules(&other, "back"));
    let start = async |address: &str, copy: &str| {
        let blocks = RedisRules::new(address, "back").unwrap();
        let options = copying(&copies, copy).blocks_in(blocks);
        Instance::start(FileRules::new(&path).unwrap(), options).await
    };
    let blocked = block(&start(&other.url(), "direct").await, "blocked").await;
    let address = FaultProxy::to(server.port());
    let one = start(&address.url(), "one").await;
    let restarted = start(&address.url(), "restarted").await;
    block(&one, "tested").await;
    restarted.until_status("tested", 403).await;
    until_read(&one).await;
    end(restarted).await;

    address.redirect(other.port());
    address.cut();
    one.until_status("tested", 200).await;
    let restarted = start(&address.url(), "restarted").await;
    for instance in [&one, &restarted] {
        until_read(instance).await;
        assert_eq!(instance.ask("blocked").await, StatusCode::FORBIDDEN);
        assert_eq!(instance.ask("tested").await, StatusCode::OK);
    }
    assert_eq!(stored_ids(&of_other).await, [blocked.id]);
}

#[tokio::test]
async fn operators_blocks_survive_split_brain() {
    let servers = Servers::start();
    let one = Instance::start(servers.rules(), LiveOptions::new()).await;
    one.put(new(5)).await;
    let again = block(&one, "again").await;
    servers.cut_off().await;
    servers.promote();
    // Operators change both servers before the instance is led to the next primary.
    let direct = RedisRules::new(&servers.replica.url(), "back").unwrap();
    let direct = Instance::start(direct, LiveOptions::new()).await;
    let recent = block(&direct, "recent").await;
    let week = NewBlock::block(7 * DAY, "ops");
    let longer = direct.live.block(BlockTarget::Text("again"), week).await;
    one.live.unblock(&again.id, "ops").await.unwrap();
    let late = block(&one, "late").await;
    until_read(&one).await;

    servers.lead_to_replica();
    servers.address.cut();
    one.until_status("recent", 403).await;
    until_read(&one).await;
    let mut ids = stored_ids(&servers.rules()).await;
    ids.sort_unstable();
    let mut expected = [longer.unwrap().id, recent.id, late.id];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    for user in ["again", "recent", "late"] {
        assert_eq!(one.ask(user).await, StatusCode::FORBIDDEN, "{user}");
    }
}
