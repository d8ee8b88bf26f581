//! Tests blocks and allowances on all instances.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use http::{Request, StatusCode};
use tower_quota::key::{self, KeyExtractor};
use tower_quota::{Key, MemoryStore};
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    BlockKind, BlockTarget, ChangeError, LiveOptions, MemoryRules, NewBlock, NewVersion, RuleStore,
};

use crate::fixture::{DAY, Instance, PATIENCE, eventually, new, redis_rules, yaml};

const BY_ADDRESS: &str =
    "limits: [{ name: all, quota: 2 per 300 days fixed_window, key: client_ip }]";

async fn from(instance: &Instance, address: &str) -> StatusCode {
    let peer: IpAddr = address.parse().unwrap();
    instance
        .send(Request::get("/").extension(peer))
        .await
        .status()
}

#[tokio::test]
async fn block_is_in_force_on_all_instances() {
    let server = RedisServer::start();
    let start = async || {
        let redis = redis_rules(&server, "blocks");
        Instance::start(redis, LiveOptions::new()).await
    };
    let [one, other] = [start().await, start().await];
    one.put(new(50)).await;
    other.until_in_force(1).await;
    let block = one
        .live
        .block(
            BlockTarget::Text("ann"),
            NewBlock::block(DAY, "ops").reason("abuse"),
        )
        .await
        .unwrap();
    assert_eq!(one.ask("ann").await, 403);
    other.until_status("ann", 403).await;
    assert_eq!(other.ask("bob").await, 200);
    assert_eq!(other.live.blocks(), std::slice::from_ref(&block));
    assert_eq!(other.live.state().blocks, 1);
    // A second value does not hide the blocked value.
    let both = Request::get("/")
        .header("user", "bob")
        .header("user", "ann");
    assert_eq!(one.send(both).await.status(), 403);

    let id = other
        .live
        .block_target(BlockTarget::Text("ann"))
        .unwrap()
        .id();
    assert_eq!(other.live.unblock(&id, "ops").await.unwrap(), Some(block));
    one.until_status("ann", 200).await;
    assert_eq!(other.live.unblock(&id, "ops").await.unwrap(), None);
}

#[tokio::test]
async fn blocked_combination_with_another_is_blocked() {
    let instance = Instance::in_memory().await;
    let document = "limits: [{ name: all, quota: 9 per 300 days fixed_window, key: { all: [client_ip, header user] } }]";
    instance.put(yaml(document)).await;
    let (by_address, by_user) = (key::client_ip(), key::header("user"));
    let parts = [
        by_address.parse("203.0.113.7").unwrap(),
        by_user.key_of("ann"),
    ];
    let both = key::all((by_address, by_user)).key_of(&parts);
    instance.block(BlockTarget::Key(&both)).await;
    let send = async |users: &[&str]| {
        let peer: IpAddr = "203.0.113.7".parse().unwrap();
        let request = Request::get("/").extension(peer);
        instance
            .send(
                users
                    .iter()
                    .fold(request, |request, user| request.header("user", *user)),
            )
            .await
            .status()
    };
    assert_eq!(send(&["ann"]).await, 403);
    assert_eq!(send(&["bob", "ann"]).await, 403);
    assert_eq!(send(&["bob"]).await, 200);
}

#[tokio::test]
async fn allowed_address_passes_blocked_network() {
    let instance = Instance::in_memory().await;
    let document = yaml(BY_ADDRESS);
    instance.put(document).await;
    let block = |text| {
        instance
            .live
            .block(BlockTarget::Text(text), NewBlock::block(DAY, "ops"))
    };
    assert_eq!(block("203.0.113.0/24").await.unwrap().id, "203.0.113.0/24");
    assert_eq!(block("2001:db8::/32").await.unwrap().id, "2001:db8::/32");
    for (address, status) in [
        ("203.0.113.7", 403),
        ("2001:db8:1::7", 403),
        ("203.0.114.7", 200),
        ("2001:db9::1", 200),
    ] {
        assert_eq!(from(&instance, address).await, status, "{address}");
    }
    let allow = NewBlock::allow(DAY, "ops");
    assert_eq!(
        instance
            .live
            .block(BlockTarget::Text("203.0.113.9"), allow)
            .await
            .unwrap()
            .id,
        "203.0.113.9/32"
    );
    for _ in 0..5 {
        assert_eq!(
            from(&instance, "203.0.113.9").await,
            200,
            "it is not counted either"
        );
    }
}

#[tokio::test]
async fn mapped_address_blocks_its_ipv4_client() {
    let instance = Instance::in_memory().await;
    instance.put(yaml(BY_ADDRESS)).await;
    let network = BlockTarget::Network("64:ff9b::198.51.100.0/120".parse().unwrap());
    for (target, id, client) in [
        (
            BlockTarget::Text("::ffff:203.0.113.7"),
            "203.0.113.7/32",
            "203.0.113.7",
        ),
        (network, "198.51.100.0/24", "198.51.100.9"),
    ] {
        assert_eq!(instance.block(target).await.id, id);
        assert_eq!(instance.live.block_target(target).unwrap().id(), id);
        assert_eq!(from(&instance, client).await, 403, "{client}");
    }
}

#[tokio::test]
async fn ended_block_refuses_nothing() {
    let instance = Instance::in_memory().await;
    instance.put(new(50)).await;
    instance
        .live
        .block(
            BlockTarget::Text("ann"),
            NewBlock::block(Duration::from_millis(30), "ops"),
        )
        .await
        .unwrap();
    instance.until_status("ann", 200).await;
    assert_eq!(instance.live.blocks(), []);
}

#[tokio::test]
async fn block_holds_across_documents() {
    let instance = Instance::in_memory().await;
    instance.put(new(50)).await;
    let ann = key::header("user").key_of("ann");
    instance.block(BlockTarget::Key(&ann)).await;
    instance.put(new(60)).await;
    assert_eq!(instance.ask("ann").await, 403);
}

#[tokio::test]
async fn unknown_scope_is_an_error() {
    let instance = Instance::in_memory().await;
    instance.put(new(50)).await;
    let target = BlockTarget::Scoped {
        scope: "cookie session",
        text: "ann",
    };
    let refused = instance
        .live
        .block(target, NewBlock::block(DAY, "ops"))
        .await;
    assert!(matches!(refused, Err(ChangeError::Refused(reason)) if reason.contains("user")));
}

/// Returns a document with a penalty. If `most` is 10m, the second refusal in a row reaches the
/// last step.
fn with_penalty(key: &str, most: &str) -> NewVersion {
    let document = format!(
        "limits: [{{ name: all, quota: 2/minute, key: {key}, missing: share, penalty: {{ after: 1, step: 10m, most: {most}, \
         block: everywhere }} }}]"
    );
    yaml(document)
}

#[tokio::test]
async fn client_at_last_step_is_blocked_everywhere() {
    let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
    let start = async || {
        Instance::counting(MemoryStore::new(), Arc::clone(&store), LiveOptions::new()).await
    };
    let [one, other] = [start().await, start().await];
    let document = with_penalty("header user", "10m");
    one.put(document).await;
    // The client does not stop; the instance looks at it once a second.
    one.until_status("mallory", 403).await;
    other.until_status("mallory", 403).await;
    assert_eq!(one.ask("ann").await, 200);
    let [block] = &other.live.blocks()[..] else {
        panic!("{:?}", other.live.blocks());
    };
    assert_eq!(
        (&block.kind, &*block.author),
        (
            &BlockKind::Block {
                limit: Some("all".to_owned())
            },
            "penalty"
        )
    );
    assert!(!block.id.contains("mallory") && block.reason.contains("all"));
    assert_eq!(block.until.since(block.since), Duration::from_secs(600));
    let audit = one.live.audit(1).await.unwrap();
    assert_eq!(
        (&*audit[0].who, &audit[0].comment),
        ("penalty", &block.reason)
    );
    other.live.unblock(&block.id, "ops").await.unwrap();
    one.until_status("mallory", 429).await;
}

#[tokio::test]
async fn unblocked_client_stays_free_until_refused() {
    let instance = Instance::in_memory().await;
    let document = with_penalty("header user", "10m");
    instance.put(document).await;
    let until_blocked = async |client: &str| {
        instance.until_status(client, 403).await;
    };
    until_blocked("mallory").await;
    let block = instance.live.blocks().remove(0);
    // The instance has checked again since, and checks again after the end of the block.
    until_blocked("eve").await;
    instance.live.unblock(&block.id, "ops").await.unwrap();
    until_blocked("trudy").await;
    assert_eq!(instance.ask("mallory").await, 429);
}

#[tokio::test]
async fn client_below_last_step_is_not_blocked() {
    let instance = Instance::in_memory().await;
    let document = with_penalty("header user", "20m");
    instance.put(document).await;
    // Two requests are admitted, a refusal is free, and the next one is the first of two steps.
    for _ in 0..4 {
        instance.ask("bob").await;
    }
    instance.until_status("mallory", 403).await;
    assert_eq!(instance.live.blocks().len(), 1);
    assert_eq!(instance.ask("bob").await, 429);
}

#[tokio::test]
async fn penalty_of_shadow_limit_blocks_no_client() {
    let instance = Instance::in_memory().await;
    let penalty = "penalty: { after: 1, step: 10m, most: 10m, block: everywhere }";
    let document = format!(
        "limits:\n  - {{ name: dry, quota: 2/minute, key: header dry, missing: skip, shadow: true, {penalty} }}\n  \
         - {{ name: all, quota: 2/minute, key: header user, missing: skip, {penalty} }}\n"
    );
    let document = yaml(document);
    instance.put(document).await;
    let dry = async || {
        let request = Request::get("/").header("dry", "bob");
        instance.send(request).await.status()
    };
    eventually("a client at the last step is blocked", async || {
        assert_eq!(dry().await, 200);
        instance.ask("mallory").await == 403
    })
    .await;
    assert_eq!(dry().await, 200);
    assert_eq!(instance.live.blocks().len(), 1);
}

#[tokio::test]
async fn ended_allowance_exempts_no_client() {
    let instance = Instance::in_memory().await;
    let document = with_penalty("header user", "10m");
    instance.put(document).await;
    let allow = NewBlock::allow(Duration::from_millis(30), "ops");
    instance
        .live
        .block(BlockTarget::Text("mallory"), allow)
        .await
        .unwrap();
    instance.until_status("mallory", 403).await;
}

#[tokio::test]
async fn key_of_two_extractors_is_blocked() {
    let instance = Instance::in_memory().await;
    let document = "limits:\n  - { name: any, quota: 9/minute, key: [header x-api-key, client_ip] }\n  \
                    - { name: key, quota: 9/minute, key: header x-api-key, missing: skip }\n";
    let new = yaml(document);
    instance.put(new).await;
    let target = BlockTarget::Text("sk_leaked");
    let blocked = instance.live.block(target, NewBlock::block(DAY, "ops"));
    blocked.await.unwrap();
    let with_key = Request::get("/").header("x-api-key", "sk_leaked");
    assert_eq!(instance.send(with_key).await.status(), 403);
}

#[tokio::test]
async fn ambiguous_key_is_refused_with_scopes() {
    let instance = Instance::in_memory().await;
    let document = "limits:\n  - { name: tenant, quota: 9/minute, key: header x-tenant }\n  \
                    - { name: key, quota: 9/minute, key: header x-api-key }\n";
    instance.put(yaml(document)).await;
    let scopes = ["header x-tenant", "header x-api-key"];
    assert_eq!(instance.live.scopes(), scopes);
    let leaked = "sk_leaked";
    let block = |target| instance.live.block(target, NewBlock::block(DAY, "ops"));
    let Err(ChangeError::Refused(reason)) = block(BlockTarget::Text(leaked)).await else {
        panic!("the first scope was blocked");
    };
    assert!(
        scopes.iter().all(|scope| reason.contains(scope)),
        "{reason}"
    );
    let target = BlockTarget::Scoped {
        scope: "header x-api-key",
        text: leaked,
    };
    block(target).await.unwrap();
    let with_key = Request::get("/").header("x-api-key", leaked);
    assert_eq!(instance.send(with_key).await.status(), 403);
}

#[tokio::test]
async fn counter_of_all_clients_is_not_blocked() {
    let instance = Instance::in_memory().await;
    let document = "limits:\n  - { name: everyone, quota: 9/minute, key: none }\n  \
                    - { name: user, quota: 9/minute, key: header user, missing: share }\n";
    instance.put(yaml(document)).await;
    let without_user = key::header("user").key_of("");
    for counter in [&Key::EVERYONE, &without_user] {
        let hash = instance.live.key_hash(counter);
        let scope = counter.scope();
        let by_hash = BlockTarget::Hash {
            scope: scope.as_str(),
            hash: &hash,
        };
        for target in [BlockTarget::Key(counter), by_hash] {
            let blocked = instance
                .live
                .block(target, NewBlock::block(DAY, "ops"))
                .await;
            assert!(
                matches!(blocked, Err(ChangeError::Refused(_))),
                "{blocked:?}"
            );
        }
    }
    assert_eq!(instance.live.blocks(), []);
}

#[tokio::test]
async fn client_is_blocked_by_hash() {
    let instance = Instance::in_memory().await;
    instance.put(new(50)).await;
    let ann = key::header("user").key_of("ann");
    let hash = instance.live.key_hash(&ann);
    let target = |hash| BlockTarget::Hash {
        scope: "header user",
        hash,
    };
    let block = |hash| {
        instance
            .live
            .block(target(hash), NewBlock::block(DAY, "ops"))
    };
    assert_eq!(block(&hash).await.unwrap().id, hash);
    assert_eq!(instance.ask("ann").await, 403);
    assert!(block("no hash").await.is_err());
}

#[tokio::test]
async fn hash_of_unknown_scope_is_refused() {
    let instance = Instance::in_memory().await;
    instance.put(new(50)).await;
    let hash = instance.live.key_hash(&key::header("user").key_of("ann"));
    let target = BlockTarget::Hash {
        scope: "header usr",
        hash: &hash,
    };
    let blocked = instance.live.block(target, NewBlock::block(DAY, "ops"));
    let error = blocked.await.unwrap_err().to_string();
    assert_eq!(
        error,
        "no limit counts by \"header usr\": give one of header user"
    );
    assert_eq!(instance.live.blocks(), []);
}

#[tokio::test]
async fn unblock_waits_for_no_endless_reading() {
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let options = LiveOptions::new().on_document(move |document| {
        if document.to_text().contains("6 per") {
            begun.send(()).unwrap();
            released.lock().unwrap().recv().ok();
        }
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(new(5)).await;
    let block = instance.block(BlockTarget::Text("ann")).await;
    let live = instance.live.clone();
    let reading = tokio::spawn(async move { live.put(None, new(6)).await });
    eventually("the reading has begun", async || {
        has_begun.try_recv().is_ok()
    })
    .await;
    // Another instance may know the first block.
    let unblock = async |id| tokio::time::timeout(PATIENCE, instance.live.unblock(id, "ops")).await;
    let unknown = unblock("0123456789abcdef").await.unwrap();
    assert!(unknown.is_err(), "{unknown:?}");
    assert_eq!(unblock(&block.id).await.unwrap().unwrap(), Some(block));
    assert_eq!(instance.ask("ann").await, 200);
    assert!(!reading.is_finished());
    drop(release);
    reading.await.unwrap().unwrap();
}

#[tokio::test]
async fn penalised_clients_wait_for_no_endless_reading() {
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let options = LiveOptions::new().on_document(move |document| {
        if document.to_text().contains("3/minute") {
            begun.send(()).unwrap();
            released.lock().unwrap().recv().ok();
        }
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(with_penalty("header user", "10m")).await;
    let live = instance.live.clone();
    let next = yaml("limits: [{ name: all, quota: 3/minute }]");
    let reading = tokio::spawn(async move { live.put(None, next).await });
    eventually("the reading has begun", async || {
        has_begun.try_recv().is_ok()
    })
    .await;
    // The store takes a second to fail for each client, so one after the other would take longer than the test waits.
    let users: Vec<String> = (0..40).map(|number| format!("mallory-{number}")).collect();
    eventually("all are blocked", async || {
        for user in &users {
            instance.ask(user).await;
        }
        instance.live.blocks().len() == users.len()
    })
    .await;
    assert!(!reading.is_finished());
    drop(release);
    reading.await.unwrap().unwrap();
}
