//! Tests overrides of single clients, on all instances.

use std::fs;
use std::time::Duration;

use tower_quota::key::KeyExtractor;
use tower_quota::{Key, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    Block, BlockTarget, ChangeError, FileRules, LiveOptions, LiveRules, MemoryRules, Target, Time,
};
use tower_quota_rules::QuotaText;

use crate::fixture::{Instance, document, eventually, new, redis_rules, rules_file, yaml};
use crate::redis::announced;

const DAY: Duration = Duration::from_secs(86_400);

fn tomorrow() -> Time {
    Time::now().after(DAY)
}

/// Returns a quota with windows that never end during a test.
fn window(units: u64) -> Quota {
    let text = format!("{units} per 300 days fixed_window");
    text.parse::<QuotaText>().unwrap().into()
}

async fn override_of(
    instance: &Instance,
    limit: &str,
    client: &str,
    quota: Quota,
    until: Time,
) -> Result<Block, ChangeError> {
    let client = instance.live.client_target(limit, client)?;
    let made = instance
        .live
        .override_quota(limit, &client, quota, until, "ops");
    made.await
}

async fn override_until(instance: &Instance, until: Time) -> Result<Block, ChangeError> {
    override_of(instance, "one", "ann", window(700), until).await
}

async fn until_limits(instance: &Instance, user: &str, limits: [u64; 2]) {
    eventually(&format!("{user} has {limits:?}"), async || {
        instance.limits(user).await == limits
    })
    .await;
}

#[tokio::test]
async fn override_is_in_force_on_all_instances() {
    let server = RedisServer::start();
    let start = async || {
        let redis = redis_rules(&server, "overrides");
        Instance::start(redis, announced()).await
    };
    let [one, other] = [start().await, start().await];
    one.put(new(500)).await;
    other.until_in_force(1).await;
    let made = override_until(&one, tomorrow()).await.unwrap();
    assert_eq!(one.limits("ann").await, [700, 1_000]);
    until_limits(&other, "ann", [700, 1_000]).await;
    assert_eq!(other.limits("bob").await, [500, 1_000]);
    let listed = other.live.overrides();
    assert_eq!(listed, std::slice::from_ref(&made));
    assert_eq!(
        (other.live.blocks(), other.live.state().blocks),
        (vec![], 0)
    );

    // A new document does not end it, and neither does the loss of all data.
    one.put(new(600)).await;
    until_limits(&other, "bob", [600, 1_200]).await;
    assert_eq!(other.limits("ann").await, [700, 1_200]);
    server.command("FLUSHALL").unwrap();
    one.put(new(650)).await;
    until_limits(&other, "bob", [650, 1_300]).await;
    let late = start().await;
    for instance in [&one, &other, &late] {
        until_limits(instance, "ann", [700, 1_300]).await;
    }

    let ended = other.live.unblock(&made.id, "bob").await.unwrap();
    assert_eq!(ended, Some(made));
    until_limits(&one, "ann", [650, 1_300]).await;
    let records = one.live.audit(1).await.unwrap();
    let until = format!("700 per 300 days fixed_window until {}", listed[0].until);
    assert_eq!(
        (records[0].what.as_str(), records[0].before.as_deref()),
        ("end_override", Some(&*until))
    );
}

#[tokio::test]
async fn override_of_the_same_client_is_replaced() {
    let instance = Instance::start(MemoryRules::new(), LiveOptions::new().readable_keys()).await;
    instance.put(new(500)).await;
    for units in [800, 900] {
        let made = override_of(&instance, "one", "ann", window(units), tomorrow());
        made.await.unwrap();
    }
    assert_eq!(instance.limits("ann").await, [900, 1_000]);
    assert_eq!(instance.live.overrides().len(), 1);
    let listed = serde_json::to_value(&instance.live.overrides()[0]).unwrap();
    let text = |field: &str| listed[field].as_str().unwrap().to_owned();
    assert_eq!(
        [text("kind"), text("limit"), text("quota"), text("author")],
        ["override", "one", "900 per 300 days fixed_window", "ops"]
    );
    assert_eq!(listed["target"]["key"]["text"], "ann");
    assert!(text("id").starts_with("one "), "{listed}");
}

#[tokio::test]
async fn override_ends_by_itself() {
    let instance = Instance::in_memory().await;
    instance.put(new(500)).await;
    let soon = Time::now().after(Duration::from_millis(30));
    override_until(&instance, soon).await.unwrap();
    until_limits(&instance, "ann", [500, 1_000]).await;
    assert_eq!(instance.live.overrides(), []);
}

#[tokio::test]
async fn override_precedes_document_and_tiers() {
    let instance = Instance::in_memory().await;
    let document = "
defaults: { key: header user }
limits: [{ name: one, quota: 500 per 300 days fixed_window }]
tiers: { free: { limits: { one: unlimited } }, pro: { limits: { one: 800/day } } }
assign: [{ key: bob, tier: free }, { key: eve, tier: pro }]
overrides: { ann: { limits: { one: 600/day } } }
";
    let new = yaml(document);
    instance.put(new).await;
    for (user, before) in [("ann", vec![600]), ("bob", vec![]), ("eve", vec![800])] {
        assert_eq!(instance.limits(user).await, before, "{user}");
        let made = override_of(&instance, "one", user, window(700), tomorrow());
        made.await.unwrap();
        assert_eq!(instance.limits(user).await, [700], "{user}");
    }
}

#[tokio::test]
async fn overrides_from_code_and_operators_both_apply() {
    let options = LiveOptions::new().with_policy(|policy| {
        policy.overrides(|limit, key, _| {
            (limit.as_str() == "two" && key.as_bytes() == b"ann").then(|| window(900))
        })
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(new(500)).await;
    override_until(&instance, tomorrow()).await.unwrap();
    assert_eq!(instance.limits("ann").await, [700, 900]);
}

#[tokio::test]
async fn override_holds_while_a_file_changes() {
    let (folder, path) = rules_file(500);
    let copy = folder.path().join("copy.json");
    let start = async || {
        let options = LiveOptions::new().local_copy(&copy);
        Instance::start(FileRules::new(&path).unwrap(), options).await
    };
    let instance = start().await;
    override_until(&instance, tomorrow()).await.unwrap();
    fs::write(&path, document(600)).unwrap();
    until_limits(&instance, "bob", [600, 1_200]).await;
    assert_eq!(instance.limits("ann").await, [700, 1_200]);
    eventually("the copy has both", async || {
        let text = fs::read_to_string(&copy).unwrap_or_default();
        text.contains("600 per") && text.contains("700 per")
    })
    .await;
    fs::remove_file(&path).unwrap();
    assert_eq!(start().await.limits("ann").await, [700, 1_200]);
}

#[tokio::test]
async fn impossible_override_names_value_and_fix() {
    let instance = Instance::in_memory().await;
    let document = "instances: 4\nlimits: [{ name: one, quota: 9/day, key: header user, cost: 3 }, \
                    { name: all, quota: 9/day, key: none }]";
    let new = yaml(document);
    instance.put(new).await;
    for (limit, client, quota, named) in [
        ("one", "ann", Quota::per_day(2), "cost"),
        ("one", "ann", Quota::per_year(3), "instances"),
        ("two", "ann", Quota::per_day(9), "one, all"),
        ("all", "ann", Quota::per_day(9), "many clients"),
        ("one", "", Quota::per_day(9), "one"),
    ] {
        let made = override_of(&instance, limit, client, quota, tomorrow());
        let error = made.await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    let network = Target::Network("203.0.113.0/24".parse().unwrap());
    let live = &instance.live;
    let made = live.override_quota("one", &network, Quota::per_day(9), tomorrow(), "ops");
    let error = made.await.unwrap_err().to_string();
    assert!(error.contains("203.0.113.0/24"), "{error}");
    assert_eq!(instance.live.overrides(), []);
}

#[tokio::test]
async fn raised_client_gets_more_units() {
    for (kind, until_granted) in [("fixed_window", 3), ("token_bucket", 0)] {
        let instance = Instance::in_memory().await;
        let quota = |units: u64| format!("{units} per 300 days {kind}");
        let usual = quota(5);
        instance
            .put(yaml(format!(
                "limits: [{{ name: one, quota: {usual}, key: header user }}]"
            )))
            .await;
        for status in [200, 200, 200, 200, 200, 429] {
            assert_eq!(instance.ask("ann").await, status, "{kind}");
        }
        let raised = quota(8).parse::<QuotaText>().unwrap().into();
        let made = override_of(&instance, "one", "ann", raised, tomorrow());
        made.await.unwrap();
        // A raised bucket refills to the higher capacity, and a grant fills it now.
        let handle = instance.live.handle();
        let raised = handle.peek("one", "ann").await.unwrap();
        assert_eq!(
            (raised.limit, raised.remaining()),
            (8, until_granted),
            "{kind}"
        );
        let granted = instance.live.grant("one", "ann", 3, "ops").await.unwrap();
        assert_eq!(granted.remaining(), until_granted + 3, "{kind}");
    }
}

fn limit_of_code() -> tower_quota::Limit {
    tower_quota::Limit::new("one", Quota::per_day(5)).by(key::header("user"))
}

#[tokio::test]
async fn override_of_policy_in_code_is_refused() {
    let policy = Policy::new().limit(limit_of_code());
    let live = LiveRules::from(RateLimitLayer::new(MemoryStore::new(), policy).handle());
    let client = live.client_target("one", "ann").unwrap();
    let made = live.override_quota("one", &client, Quota::per_day(9), tomorrow(), "ops");
    let error = made.await.unwrap_err().to_string();
    assert!(error.contains("code of this service"), "{error}");
}

#[tokio::test]
async fn hash_of_many_clients_is_refused() {
    let instance = Instance::in_memory().await;
    instance.put(new(500)).await;
    let scope = key::header("user").scope();
    let none = instance.live.key_hash(&Key::new(scope, b""));
    for hash in [none.clone(), none.to_uppercase(), format!("0{none}")] {
        let (scope, hash) = (scope.as_str(), &*hash);
        let target = instance
            .live
            .block_target(BlockTarget::Hash { scope, hash });
        assert!(target.is_err(), "{hash}: {target:?}");
    }
    let target = instance.live.block_target(BlockTarget::Hash {
        scope: &"header user".repeat(1_000),
        hash: "0123456789abcdef",
    });
    let error = target.unwrap_err().to_string();
    assert!(error.contains("no limit counts by"), "{error}");
    for hash in ["1f", "+123456789abcdef", ""] {
        let (scope, hash) = (scope.as_str(), hash);
        let target = instance
            .live
            .block_target(BlockTarget::Hash { scope, hash });
        let error = target.unwrap_err().to_string();
        assert!(error.contains("16"), "{error}");
    }
}

#[tokio::test]
async fn override_of_shared_counter_from_code_is_refused() {
    let options = LiveOptions::new().with_policy(|policy| policy.limit(limit_of_code()));
    let instance = Instance::start(MemoryRules::new(), options).await;
    let document = "limits: [{ name: two, quota: 5/day, key: client_ip }]";
    let new = yaml(document);
    instance.put(new).await;
    let live = &instance.live;
    let scope = key::header("user").scope();
    for (key, is_made) in [(&b""[..], false), (b"ann", true)] {
        let hash = live.key_hash(&Key::new(scope, key));
        let (scope, hash) = (scope.as_str(), &*hash);
        let client = BlockTarget::Hash { scope, hash };
        let made = match live.block_target(client) {
            Ok(client) => {
                let quota = Quota::per_day(900);
                let made = live.override_quota("one", &client, quota, tomorrow(), "ops");
                made.await.is_ok()
            }
            Err(_) => false,
        };
        assert_eq!(made, is_made, "{hash}");
    }
}
