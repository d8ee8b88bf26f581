//! Tests documents in files, with edits, renames, and the symlinks of Kubernetes.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_live::{
    Action, BlockChanges, BlockStore, BlockTarget, By, ChangeError, FileRules, LiveOptions,
    MOST_BLOCKS, NewBlock, NewVersion, RedisRules, RuleStore, RuleStoreError, Time,
};

use crate::fixture::{Instance, document, eventually, new, redis_rules, rules_file};
use crate::redis::block_of;

/// Follows a file by events, with rare polls.
async fn following(path: &Path) -> Instance {
    Instance::start(
        FileRules::new(path).unwrap(),
        LiveOptions::new().poll_every(Duration::from_secs(600)),
    )
    .await
}

async fn until_limits(instance: &Instance, units: u64) {
    until_limits_of(instance, "ann", units).await;
}

async fn until_limits_of(instance: &Instance, user: &str, units: u64) {
    eventually(&format!("{units} are in force"), async || {
        instance.limits(user).await == [units, 2 * units]
    })
    .await;
}

#[tokio::test]
async fn edit_in_place_becomes_active() {
    let (_folder, path) = rules_file(500);
    let instance = following(&path).await;
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
    for units in [501, 502, 503] {
        fs::write(&path, document(units)).unwrap();
        until_limits(&instance, units).await;
    }
}

#[tokio::test]
async fn renamed_file_becomes_active() {
    let folder = tempfile::tempdir().unwrap();
    let (path, beside) = (
        folder.path().join("rules.yaml"),
        folder.path().join("rules.yaml.new"),
    );
    fs::write(&path, document(500)).unwrap();
    let instance = following(&path).await;
    for units in [501, 502, 503] {
        fs::write(&beside, document(units)).unwrap();
        fs::rename(&beside, &path).unwrap();
        until_limits(&instance, units).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn swapped_config_map_becomes_active() {
    let folder = tempfile::tempdir().unwrap();
    // Use the layout of a kubelet volume. The file is a symlink to `..data`, which is a symlink to
    // a folder with a time in its name.
    let write = |generation: u64| {
        let name = format!("..2026_{generation}");
        fs::create_dir(folder.path().join(&name)).unwrap();
        fs::write(
            folder.path().join(&name).join("rules.yaml"),
            document(generation),
        )
        .unwrap();
        symlink(&name, folder.path().join("..data_tmp")).unwrap();
        fs::rename(
            folder.path().join("..data_tmp"),
            folder.path().join("..data"),
        )
        .unwrap();
    };
    write(500);
    symlink("..data/rules.yaml", folder.path().join("rules.yaml")).unwrap();
    let instance = following(&folder.path().join("rules.yaml")).await;
    for generation in [501, 502, 503] {
        write(generation);
        fs::remove_dir_all(folder.path().join(format!("..2026_{}", generation - 1))).unwrap();
        until_limits(&instance, generation).await;
    }
}

#[tokio::test]
async fn deleted_file_keeps_last_document() {
    let (_folder, path) = rules_file(500);
    let instance = following(&path).await;
    fs::remove_file(&path).unwrap();
    eventually("it is noticed", async || {
        !instance.live.state().is_reachable
    })
    .await;
    assert_eq!(instance.limits("ann").await, [500, 1_000]);
    fs::write(&path, document(501)).unwrap();
    until_limits(&instance, 501).await;
    eventually("all is well", async || instance.live.state().is_healthy()).await;
}

#[tokio::test]
async fn broken_or_empty_file_keeps_last_document() {
    let (_folder, path) = rules_file(500);
    let instance = following(&path).await;
    for broken in ["limits: [", "", "limits: [{ name: one, quota: lots }]"] {
        fs::write(&path, broken).unwrap();
        eventually("it is noticed", async || {
            !instance.live.state().is_healthy()
        })
        .await;
        assert_eq!(instance.limits("ann").await, [500, 1_000]);
        fs::write(&path, document(500)).unwrap();
        eventually("it is well", async || instance.live.state().is_healthy()).await;
    }
}

#[tokio::test]
async fn poll_finds_missed_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later").join("rules.yaml");
    // The folder does not exist, so watching fails.
    let options = LiveOptions::new()
        .poll_every(Duration::from_millis(50))
        .start_deadline(Duration::from_millis(50));
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    assert!(instance.live.in_force().is_none());
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, document(500)).unwrap();
    until_limits(&instance, 500).await;
}

#[tokio::test]
async fn file_is_only_read() {
    let (folder, path) = rules_file(500);
    let instance = following(&path).await;
    assert!(instance.live.state().is_read_only);
    fs::write(&path, document(501)).unwrap();
    until_limits(&instance, 501).await;
    let invalid = NewVersion::new("limits: [", "ann");
    for refused in [
        instance.live.put(None, new(1)).await,
        instance.live.put(None, invalid).await,
        instance.live.rollback(None, 1, "ann").await,
    ] {
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, ChangeError::Store(RuleStoreError::ReadOnly(_))),
            "{error:?}"
        );
        let path = path.to_str().unwrap();
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), document(501));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(instance.number(), 2);
}

#[tokio::test]
async fn changes_of_a_file_are_in_the_audit_log() {
    let (_folder, path) = rules_file(500);
    let instance = following(&path).await;
    for units in [501, 500, 501] {
        fs::write(&path, document(units)).unwrap();
        until_limits(&instance, units).await;
    }
    eventually("each change is recorded", async || {
        instance.live.audit(9).await.unwrap().len() == 4
    })
    .await;
    let records = instance.live.audit(9).await.unwrap();
    assert_eq!(records[0].after, records[2].after);
    assert_eq!(records[0].before, records[1].after);
    assert_ne!(records[0].before, records[0].after);
    let newest = (records[0].what.as_str(), &*records[0].who);
    assert_eq!(newest, ("file", "file"));
    // The text of the start.
    assert_eq!(records[3].before, None);
}

#[cfg(unix)]
#[tokio::test]
async fn local_copy_keeps_its_permissions() {
    let (folder, path) = rules_file(500);
    let copy = folder.path().join("rules.copy");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let options = LiveOptions::new().local_copy(&copy);
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    eventually("there is a copy", async || copy.exists()).await;
    assert_eq!(mode(&copy), 0o600);
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o664)).unwrap();
    fs::write(&path, document(501)).unwrap();
    until_limits(&instance, 501).await;
    eventually("the copy is new", async || {
        fs::read_to_string(&copy).unwrap().contains("501 per")
    })
    .await;
    assert_eq!(mode(&copy), 0o664);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn too_long_file_is_not_read() {
    let (_folder, path) = rules_file(500);
    let store = FileRules::new(&path).unwrap().max_bytes(20);
    let instance = Instance::start(store, LiveOptions::new()).await;
    let error = instance.live.state().last_error.unwrap();
    assert!(error.contains("more than 20 bytes"), "{error}");
    assert!(FileRules::new("rules.txt").is_err());
}

/// Starts two instances that follow one file and share their blocks.
async fn two_followers(path: &Path, server: &RedisServer) -> [Instance; 2] {
    let start = async || {
        let blocks = redis_rules(server, "blocks");
        let options = LiveOptions::new().poll_every(Duration::from_secs(600));
        Instance::start(FileRules::new(path).unwrap(), options.blocks_in(blocks)).await
    };
    [start().await, start().await]
}

#[tokio::test]
async fn blocks_are_shared_by_all_followers() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("rules.yaml");
    fs::write(&path, document(500)).unwrap();
    let alone = following(&path).await;
    assert!(!alone.live.state().blocks_are_shared);
    let [one, other] = two_followers(&path, &server).await;
    assert!(one.live.state().blocks_are_shared);
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    let block = one
        .live
        .block(BlockTarget::Text("ann"), hour.clone())
        .await
        .unwrap();
    assert_eq!(one.ask("ann").await, 403);
    other.until_status("ann", 403).await;
    assert_eq!(other.ask("bob").await, 200);
    // An instance that starts later has it too, and a change of the file ends no block.
    let [late, _] = two_followers(&path, &server).await;
    assert_eq!(late.ask("ann").await, 403);
    fs::write(&path, document(501)).unwrap();
    until_limits_of(&other, "bob", 501).await;
    assert_eq!(other.ask("ann").await, 403);

    other.live.unblock(&block.id, "ops").await.unwrap();
    one.until_status("ann", 200).await;
    let records = one.live.audit(9).await.unwrap();
    let of_blocks = records.iter().filter(|record| record.target != "rules");
    assert_eq!(of_blocks.count(), 2, "{records:?}");
}

#[tokio::test]
async fn changed_file_leaves_a_record_for_all() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let [one, other] = two_followers(&path, &server).await;
    for units in [501, 502] {
        fs::write(&path, document(units)).unwrap();
        for instance in [&one, &other] {
            until_limits_of(instance, "bob", units).await;
        }
    }
    let files = async || {
        let mut records = one.live.audit(99).await.unwrap();
        records.retain(|record| record.what == Action::File);
        records
    };
    eventually("all changes have a record", async || {
        files().await.len() >= 3
    })
    .await;
    assert!(one.live.refresh().await && other.live.refresh().await);
    let records = files().await;
    assert_eq!(records.len(), 3, "{records:?}");
    assert_eq!(records[0].who, "file");
    assert_eq!(records[0].before, records[1].after);
    assert_ne!(records[0].before, records[0].after);
}

#[tokio::test]
async fn block_in_an_outage_is_shared_later() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let [one, other] = two_followers(&path, &server).await;
    let old = one.block(BlockTarget::Text("old")).await;
    other.until_status("old", 403).await;
    server.pause();
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    let block = one.live.block(BlockTarget::Text("ann"), hour).await;
    let block = block.unwrap();
    one.live.unblock(&old.id, "ops").await.unwrap();
    for id in [&block.id, &old.id] {
        assert!(!one.live.is_shared(id));
    }
    // The file and the outage are followed meanwhile.
    fs::write(&path, document(501)).unwrap();
    until_limits_of(&one, "bob", 501).await;
    assert!(!one.live.refresh().await);
    assert_eq!((one.ask("ann").await, one.ask("old").await), OK_HERE);

    server.resume();
    other.until_status("ann", 403).await;
    other.until_status("old", 200).await;
    assert_eq!((one.ask("ann").await, one.ask("old").await), OK_HERE);
    eventually("the records are stored", async || {
        let records = other.live.audit(99).await.unwrap_or_default();
        let has = |what| records.iter().any(|record| record.what == what);
        has(Action::Block) && has(Action::Unblock)
    })
    .await;
    for id in [&block.id, &old.id] {
        assert!(one.live.is_shared(id));
    }
}

#[tokio::test]
async fn each_change_in_an_outage_has_its_record() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let [one, other] = two_followers(&path, &server).await;
    server.pause();
    let ann = BlockTarget::Text("ann");
    for hours in [1, 2, 3] {
        let new = NewBlock::block(Duration::from_secs(hours * 3_600), "ops");
        let reason = format!("{hours} h");
        let block = one.live.block(ann, new.reason(reason)).await.unwrap();
        if hours == 2 {
            let by = By::new("ops").comment("a mistake");
            one.live.unblock(&block.id, by).await.unwrap();
        }
    }
    server.resume();
    other.until_status("ann", 403).await;
    let comments = async || {
        let mut records = other.live.audit(99).await.unwrap_or_default();
        records.retain(|record| record.target != "rules");
        let comments = records.into_iter().rev().map(|record| record.comment);
        comments.collect::<Vec<String>>()
    };
    let expected = ["1 h", "2 h", "a mistake", "3 h"];
    eventually("all records are stored", async || {
        comments().await.len() >= expected.len()
    })
    .await;
    assert!(one.live.refresh().await);
    assert_eq!(comments().await, expected);
}

#[tokio::test]
async fn newer_decision_replaces_held_change() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let proxy = FaultProxy::to(server.port());
    let start = async |url: &str| {
        let blocks = RedisRules::new(url, "held").unwrap();
        let options = LiveOptions::new().blocks_in(blocks);
        Instance::start(FileRules::new(&path).unwrap(), options).await
    };
    let (one, other) = (start(&proxy.url()).await, start(&server.url()).await);
    let old = one.block(BlockTarget::Text("old")).await;
    other.until_status("old", 403).await;
    proxy.inflict(Fault::Refuse);
    eventually("the outage is noticed", async || {
        !one.live.state().is_healthy()
    })
    .await;
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    let ann = BlockTarget::Text("ann");
    let held = one.live.block(ann, hour).await.unwrap();
    one.live.unblock(&old.id, "ops").await.unwrap();
    eventually("the clock ticks", async || {
        Time::now().unix_millis() > held.since.unix_millis() + 1
    })
    .await;
    let longer = other.block(ann).await;
    let newer = other.block(BlockTarget::Text("old")).await;

    proxy.heal();
    eventually("the outage is over", async || one.live.state().is_healthy()).await;
    let state = redis_rules(&server, "held").state(None).await.unwrap();
    let mut stored = state.unwrap().blocks.changed;
    for block in [longer, newer] {
        assert_eq!(stored.remove(&block.id), Some(Some(block.clone())));
        assert!(one.live.blocks().contains(&block));
    }
}

#[tokio::test]
async fn full_store_delays_no_other_change() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let [one, other] = two_followers(&path, &server).await;
    let old = one.block(BlockTarget::Text("old")).await;
    other.until_status("old", 403).await;
    let store = redis_rules(&server, "blocks");
    let most = u32::try_from(MOST_BLOCKS).unwrap() + 9;
    let many = (0..most).map(|number| block_of(number, false));
    let many = BlockChanges::all(many);
    store.restore_blocks(0, &many).await.unwrap();
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    let users = ["ann", "bob", "eve"];
    server.pause();
    for user in users {
        let target = BlockTarget::Text(user);
        one.live.block(target, hour.clone()).await.unwrap();
    }
    one.live.unblock(&old.id, "ops").await.unwrap();
    server.resume();
    eventually("the store is read", async || one.live.refresh().await).await;
    other.until_status("old", 200).await;
    for user in users {
        assert_eq!(one.ask(user).await, 403, "{user}");
    }
    let stored = server.command("HLEN quota:rules:{blocks}:blocks").unwrap();
    assert_eq!(stored.trim(), format!(":{most}"));
    let records = other.live.audit(99).await.unwrap();
    let blocks = records.iter().filter(|record| record.what == Action::Block);
    assert_eq!(blocks.count(), 4);
}

#[tokio::test]
async fn many_blocks_arrive_over_slow_link() {
    let (server, (_folder, path)) = (RedisServer::start(), rules_file(500));
    let many = (0..1_000).map(|number| block_of(number, false));
    let many = BlockChanges::all(many);
    let store = redis_rules(&server, "slow");
    store.restore_blocks(0, &many).await.unwrap();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::Delay(Duration::from_millis(90)));
    let blocks = RedisRules::new(&proxy.url(), "slow").unwrap();
    let options = LiveOptions::new().blocks_in(blocks);
    let one = Instance::start(FileRules::new(&path).unwrap(), options).await;
    eventually("all blocks are in force", async || {
        one.live.blocks().len() == 1_000
    })
    .await;
    assert!(one.live.state().is_healthy());
}

const OK_HERE: (StatusCode, StatusCode) = (StatusCode::FORBIDDEN, StatusCode::OK);

#[tokio::test]
async fn lost_shared_blocks_are_restored() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("rules.yaml");
    fs::write(&path, document(500)).unwrap();
    let [one, other] = two_followers(&path, &server).await;
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    let block = |user| one.live.block(BlockTarget::Text(user), hour.clone());
    block("ann").await.unwrap();
    server.command("FLUSHALL").unwrap();
    block("bob").await.unwrap();
    for instance in [&one, &other] {
        eventually("both are blocked", async || {
            instance.ask("ann").await == 403 && instance.ask("bob").await == 403
        })
        .await;
    }
}

#[tokio::test]
async fn file_is_followed_without_shared_blocks() {
    let (mut server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("rules.yaml");
    fs::write(&path, document(500)).unwrap();
    let [one, _] = two_followers(&path, &server).await;
    let hour = NewBlock::block(Duration::from_secs(3_600), "ops");
    one.live
        .block(BlockTarget::Text("ann"), hour.clone())
        .await
        .unwrap();
    server.kill();
    eventually("it is noticed", async || !one.live.state().is_healthy()).await;
    fs::write(&path, document(501)).unwrap();
    until_limits_of(&one, "bob", 501).await;
    assert_eq!(one.ask("ann").await, 403);
    let [late, _] = two_followers(&path, &server).await;
    assert_eq!(late.limits("bob").await, [501, 1_002]);

    server.start_again();
    eventually("it has recovered", async || {
        one.live.state().is_healthy() && late.live.state().is_healthy()
    })
    .await;
    late.live
        .block(BlockTarget::Text("eve"), hour)
        .await
        .unwrap();
    one.until_status("eve", 403).await;
}
