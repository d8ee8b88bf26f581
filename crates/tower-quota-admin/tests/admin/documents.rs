//! Tests to put, read, compare and roll back rules, with conflicts and the history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tower_quota_admin::{AdminOptions, ProblemKind, Role};
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, MemoryRules, NewVersion, RedisRules, RuleStore};
use tower_quota_rules::Rules;

use crate::server::{HOLDER, Instance, RULES, TOKEN, number, options, problem, send};

fn stricter() -> String {
    RULES.replace("5/minute", "2/minute")
}

#[tokio::test]
async fn put_rules_are_in_force() {
    let instance = Instance::with_rules().await;
    let response = instance.get("/v1/rules").await;
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(number(&tag), 1);
    assert_eq!(response.headers()["content-type"], "application/yaml");
    assert_eq!(response.text().await.unwrap(), RULES);

    let put = send(
        instance
            .put_rules(&stricter())
            .header("If-Match", &tag)
            .header("X-Comment", "load"),
    )
    .await;
    assert_eq!(put.status(), 200);
    assert_eq!(put.headers()["etag"], instance.tag("/v1/rules").await);
    let version: Value = put.json().await.unwrap();
    assert_eq!(version["author"], HOLDER);
    assert_eq!(version["comment"], "load");

    let mut admitted = 0;
    while instance.ask("ann").await == 200 {
        admitted += 1;
    }
    assert_eq!(admitted, 2);
}

#[tokio::test]
async fn known_version_is_not_sent_again() {
    let instance = Instance::with_rules().await;
    let request = instance
        .request(Method::GET, "/v1/rules")
        .header("If-None-Match", instance.tag("/v1/rules").await);
    assert_eq!(send(request).await.status(), 304);
}

#[tokio::test]
async fn put_of_old_version_conflicts() {
    let instance = Instance::with_rules().await;
    let put = |tag: &str| {
        instance
            .put_rules(&stricter())
            .header("If-Match", tag)
            .send()
    };
    let tag = instance.tag("/v1/rules").await;
    assert_eq!(put(&tag).await.unwrap().status(), 200);
    let lost = problem(put(&tag).await.unwrap(), ProblemKind::VersionChanged).await;
    assert_eq!(lost["current"], 2);
    let tag = instance.tag("/v1/rules").await;
    for tag in [format!("W/{tag}"), "\"2\"".into(), "\"2-0\"".into()] {
        problem(put(&tag).await.unwrap(), ProblemKind::VersionChanged).await;
    }
    assert_eq!(put("*").await.unwrap().status(), 200);

    problem(
        send(instance.put_rules(RULES)).await,
        ProblemKind::VersionRequired,
    )
    .await;
    let first = send(instance.put_rules(RULES).header("If-None-Match", "*")).await;
    assert_eq!(
        problem(first, ProblemKind::VersionChanged).await["current"],
        3
    );
}

#[tokio::test]
async fn put_of_rules_without_limits_is_refused() {
    let instance = Instance::with_rules().await;
    let put = async |text: &str| {
        let put = instance.put_rules(text).header("If-Match", "*");
        send(put).await
    };
    for empty in [
        "",
        "# all commented out\n",
        "limits:\n",
        "block: [{ key: ann }]",
    ] {
        let refused = problem(put(empty).await, ProblemKind::InvalidRules).await;
        let reason = refused["problems"][0]["message"].as_str().unwrap();
        assert!(reason.contains("no limit"), "{empty}: {refused}");
    }
    assert_eq!(instance.number().await, 1);
    assert_eq!(put("allow_empty: true").await.status(), 200);
}

#[tokio::test]
async fn bad_rules_list_every_problem() {
    let instance = Instance::with_rules().await;
    let bad =
        "limits:\n  - { name: minute, quota: 100/minte }\n  - { name: minute, quotas: 5/hour }\n";
    let put = send(instance.put_rules(bad).header("If-Match", "*")).await;
    let refused = problem(put, ProblemKind::InvalidRules).await;
    let problems = refused["problems"].as_array().unwrap();
    assert!(problems.len() >= 2, "{refused}");
    assert_eq!(problems[0]["line"], 2);
    assert_eq!(problems[0]["path"], "limits[0].quota");
    assert_eq!(instance.number().await, 1);
}

#[tokio::test]
async fn check_reports_and_changes_nothing() {
    let instance = Instance::with_rules().await;
    let check = async |content_type: &str, body: String| -> Value {
        let request = instance
            .request(Method::POST, "/v1/rules/check")
            .header("Content-Type", content_type);
        send(request.body(body)).await.json().await.unwrap()
    };
    let good = check(
        "application/json",
        json!({ "limits": [{ "name": "a", "quota": "1/hour" }] }).to_string(),
    )
    .await;
    assert_eq!(good["valid"], true);
    assert_eq!(good["tests"]["passed"], 0);
    let good = check(
        "application/yaml; charset=utf-8",
        "limits: [{ name: a, quota: 1/hour }]".to_owned(),
    )
    .await;
    assert_eq!(good["valid"], true, "{good}");
    let failing = format!("{RULES}tests: [{{ request: {{}}, expect: {{ tier: pro }} }}]");
    let failing = check("application/yaml", failing).await;
    assert_eq!(failing["valid"], false);
    assert_eq!(failing["tests"]["failures"][0]["test"], 0);
    assert_eq!(instance.number().await, 1);
}

#[tokio::test]
async fn rollback_is_a_new_version() {
    let instance = Instance::with_rules().await;
    send(instance.put_rules(&stricter()).header("If-Match", "*")).await;
    let diff = instance.json("/v1/rules/diff?from=1").await;
    let expected = json!([{ "path": "limits[minute].quota", "change": "changed", "before": "5/minute", "after": "2/minute" }]);
    assert_eq!((&diff["to"], &diff["differences"]), (&json!(2), &expected));

    let rollback = |tag: &str| {
        let request = instance.request(Method::POST, "/v1/rules/rollback");
        request
            .header("If-Match", tag)
            .header("X-Comment", "oops")
            .json(&json!({ "version": 1 }))
            .send()
    };
    let old = rollback(&instance.tag("/v1/rules/1").await).await.unwrap();
    assert_eq!(
        problem(old, ProblemKind::VersionChanged).await["current"],
        2
    );
    let tag = instance.tag("/v1/rules").await;
    let version: Value = rollback(&tag).await.unwrap().json().await.unwrap();
    assert_eq!(version["number"], 3);
    assert_eq!(instance.get("/v1/rules").await.text().await.unwrap(), RULES);
    assert_eq!(
        instance.get("/v1/rules/2").await.text().await.unwrap(),
        stricter()
    );

    let history = instance.json("/v1/rules/history?count=2").await;
    let numbers: Vec<_> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| &version["number"])
        .collect();
    assert_eq!(numbers, [&json!(3), &json!(2)]);
    assert_eq!(
        history["versions"][0]["comment"],
        "rollback to version 1: oops"
    );
    let audit = instance.json("/v1/audit?count=1").await;
    let record = &audit["records"][0];
    assert_eq!(record["who"], HOLDER);
    assert_eq!(record["what"], "rollback");
    assert_eq!(record["comment"], "oops");
    assert_eq!(record["before"], "version 2");
    assert_eq!(record["after"], "version 3");
}

#[tokio::test]
async fn rollback_needs_expected_version() {
    let instance = Instance::with_rules().await;
    let rollback = instance
        .request(Method::POST, "/v1/rules/rollback")
        .json(&json!({ "version": 1 }));
    problem(send(rollback).await, ProblemKind::VersionRequired).await;
}

#[tokio::test]
async fn tag_from_before_a_restart_conflicts() {
    // A restarted store in memory counts its versions from 1 again.
    let (before, after) = (Instance::with_rules().await, Instance::with_rules().await);
    let put = async |instance: &Instance, rules: &str, tag: &str| {
        let put = instance.put_rules(rules).header("If-Match", tag);
        send(put).await
    };
    put(&before, &stricter(), "*").await;
    let seen = before.tag("/v1/rules").await;

    put(&after, RULES, "*").await;
    assert_eq!(after.number().await, number(&seen));
    let lost = put(&after, &stricter(), &seen).await;
    assert_eq!(
        problem(lost, ProblemKind::VersionChanged).await["current"],
        2
    );
}

#[tokio::test]
async fn broken_version_is_shown_on_request() {
    let redis = RedisServer::start();
    let store = || RedisRules::new(&redis.url(), "test").unwrap();
    let live = LiveOptions::new().poll_every(Duration::from_millis(10));
    let instance = Instance::with_live_options(store(), options(), live).await;
    let first = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    // A program with an older grammar puts rules that this instance cannot read.
    let broken = NewVersion::new("limits: [{ name: minute }]", "eve");
    store().put(None, broken).await.unwrap();
    while instance.json("/v1/health").await["rules"]["last_error"].is_null() {
        tokio::task::yield_now().await;
    }
    let in_force = instance.get("/v1/rules").await;
    let tag = in_force.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(
        (in_force.text().await.unwrap(), number(&tag)),
        (RULES.to_owned(), 1)
    );
    let newest = instance.get("/v1/rules?newest=true").await;
    let tag = newest.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(number(&tag), 2);
    assert_eq!(newest.text().await.unwrap(), "limits: [{ name: minute }]");
    assert_eq!(instance.json("/v1/rules/diff?from=1").await["to"], 1);
    assert_eq!(instance.json("/v1/rules/history").await["current"], 2);
    // The change starts from the broken version, so it expects the tag of that version.
    let put = instance.put_rules(&stricter()).header("If-Match", tag);
    assert_eq!(send(put).await.status(), 200);
}

#[expect(clippy::disallowed_methods, reason = "the test compares real times")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the answers to a request of each token at once, while the service answers other requests.
async fn answers_during_service(
    instance: &Instance,
    path: &str,
    tokens: &[String; 4],
) -> Vec<Response> {
    let start = now();
    let requests = tokens.each_ref().map(|token| {
        let request = instance.anonymous(Method::GET, path).bearer_auth(token);
        tokio::spawn(request.send())
    });
    let (mut asked, mut longest) = (0, Duration::ZERO);
    while !requests.iter().all(JoinHandle::is_finished) {
        let ask = now();
        instance.ask("ann").await;
        longest = longest.max(ask.elapsed());
        asked += 1;
    }
    // This runtime has one thread. If the work ran on it, other requests would wait for most of the time.
    let all = start.elapsed();
    assert!(
        asked > 40 && longest * 10 < all,
        "{path}: {asked} requests, one waited {longest:?} of {all:?}"
    );
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap().unwrap());
    }
    answers
}

#[tokio::test]
async fn service_goes_on_during_large_diffs() {
    // Four diffs take longer than the default deadline of the API on a busy machine. A token has one at a time.
    let mut options = options().timeout(Duration::from_secs(600));
    let authors = [0, 1, 2, 3].map(|number| format!("a token for diff {number}"));
    let readers = [0, 1, 2, 3].map(|number| format!("a token of reader {number}"));
    for token in &authors {
        options = options.bearer_token(token, token);
    }
    for token in &readers {
        options = options.bearer_token_of_role(Role::Read, token, token);
    }
    let instance = Instance::with(MemoryRules::new(), options).await;
    let first = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    let mut large = format!("{RULES}overrides:\n");
    for client in 0..10_000 {
        large += &format!(
            "  client{client}: {{ limits: {{ minute: {}/minute }} }}\n",
            client + 1
        );
    }
    let put = instance.put_rules(&large).header("If-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    for tokens in [&authors, &readers] {
        let path = "/v1/rules/diff?from=1&to=2";
        for diff in answers_during_service(&instance, path, tokens).await {
            let diff: Value = diff.json().await.unwrap();
            assert_eq!(diff["differences"].as_array().unwrap().len(), 1_000);
            assert_eq!(diff["more"], 9_000);
        }
    }
    for document in answers_during_service(&instance, "/v1/rules", &readers).await {
        let document: Value = document.json().await.unwrap();
        assert_eq!(document["overrides"].as_object().unwrap().len(), 10_000);
    }
}

#[tokio::test]
async fn history_marks_rejected_and_replaced_versions() {
    let server = RedisServer::start();
    let rules = || RedisRules::new(&server.url(), "fates").unwrap();
    let instance = Instance::with(rules(), options()).await;
    for condition in ["If-None-Match", "If-Match"] {
        let put = instance.put_rules(RULES).header(condition, "*");
        assert_eq!(send(put).await.status(), 200);
    }
    // Another program does not check its document.
    let broken = NewVersion::new("limits: [{ name: one, quota: lots }]", "mallory");
    rules().put(None, broken).await.unwrap();
    let rejected = async {
        loop {
            let history = instance.json("/v1/rules/history").await;
            if history["versions"][0]["rejected"].is_string() {
                return history;
            }
        }
    };
    let history = tokio::time::timeout(Duration::from_secs(20), rejected).await;
    let history = history.unwrap();
    let [broken, second, first] = [0, 1, 2].map(|number| &history["versions"][number]);
    assert!(
        broken["rejected"].as_str().unwrap().contains("lots"),
        "{broken}"
    );
    assert_eq!(broken.get("in_force_since"), None);
    assert!(second["in_force_since"].is_string() && second.get("in_force_until").is_none());
    assert_eq!(first["in_force_until"], second["in_force_since"]);
}

#[tokio::test]
async fn token_has_one_check_at_a_time() {
    let instance = Instance::with_rules().await;
    let address = instance.admin.strip_prefix("http://").unwrap();
    let slow = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/rules/check HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {TOKEN}\r\nexpect: 100-continue\r\n\
         content-type: application/yaml\r\ncontent-length: 1000\r\n\r\n"
    );
    slow.writable().await.unwrap();
    assert_eq!(slow.try_write(head.as_bytes()).unwrap(), head.len());
    // The server asks for the body once the check has its place.
    slow.readable().await.unwrap();
    let mut answer = [0; 100];
    let length = slow.try_read(&mut answer).unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 100 "));

    let check = async || {
        let check = instance.request(Method::POST, "/v1/rules/check");
        send(check.header("Content-Type", "application/yaml").body(RULES)).await
    };
    problem(check().await, ProblemKind::TooManyChecks).await;
    // A change has a place of its own.
    let put = instance.put_rules(RULES).header("If-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    drop(slow);
    let is_free = async { while check().await.status() != 200 {} };
    tokio::time::timeout(Duration::from_secs(20), is_free)
        .await
        .unwrap();
}

#[tokio::test]
async fn lost_limits_are_named_before_and_after_a_change() {
    let instance = Instance::with_rules().await;
    let renamed = RULES.replace("minute", "hour");
    let check = instance.request(Method::POST, "/v1/rules/check");
    let check = check.header("Content-Type", "application/yaml");
    let check: Value = send(check.body(renamed.clone()))
        .await
        .json()
        .await
        .unwrap();
    let message = "the limit \"minute\" of the old rules is gone";
    assert_eq!(check["valid"], true);
    assert_eq!(check["problems"][0]["message"], message);

    let put = send(instance.put_rules(&renamed).header("If-Match", "*")).await;
    let put: Value = put.json().await.unwrap();
    assert_eq!(put["warnings"]["problems"][0]["message"], message);
    let back = instance.json("/v1/rules/diff?from=2&to=1").await;
    assert_eq!(back["lost_limits"], json!(["hour"]));
}

/// Holds up the reading of slow documents until it is dropped.
struct HeldUp(Arc<Semaphore>);

impl Drop for HeldUp {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Starts an instance with a short timeout, whose documents with the word `slow` are held up.
async fn slow_instance() -> (Instance, HeldUp) {
    let (gate, runtime) = (Arc::new(Semaphore::new(0)), Handle::current());
    let held_up = HeldUp(Arc::clone(&gate));
    let live = LiveOptions::new().read_with({
        move |text| {
            if text.contains("slow") {
                drop(runtime.block_on(gate.acquire()));
            }
            Rules::parse(text)
        }
    });
    let options = AdminOptions::new()
        .bearer_token(HOLDER, TOKEN)
        .bearer_token("other", OTHER)
        .timeout(Duration::from_secs(1));
    let instance = Instance::with_live_options(MemoryRules::new(), options, live).await;
    let first = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    (instance, held_up)
}

const OTHER: &str = "the token of a second person";

#[tokio::test]
async fn check_keeps_its_place_until_its_end() {
    let (instance, held_up) = slow_instance().await;
    let check = async || {
        let request = instance.request(Method::POST, "/v1/rules/check");
        let request = request.header("Content-Type", "application/yaml");
        send(request.body(format!("# slow\n{RULES}"))).await
    };
    problem(check().await, ProblemKind::Timeout).await;
    for _ in 0..3 {
        problem(check().await, ProblemKind::TooManyChecks).await;
    }
    drop(held_up);
    let is_free = async { while check().await.status() != 200 {} };
    tokio::time::timeout(Duration::from_secs(20), is_free)
        .await
        .unwrap();
}

#[tokio::test]
async fn change_keeps_its_place_until_its_end() {
    let (instance, held_up) = slow_instance().await;
    let put = async || {
        let request = instance.put_rules(&format!("# slow\n{RULES}"));
        send(request.header("If-Match", "*")).await
    };
    for _ in 0..2 {
        problem(put().await, ProblemKind::Timeout).await;
    }
    for _ in 0..3 {
        problem(put().await, ProblemKind::TooManyChecks).await;
    }
    // Another person has places too.
    let rollback = instance.anonymous(Method::POST, "/v1/rules/rollback");
    let rollback = rollback.bearer_auth(OTHER).header("If-Match", "*");
    let rollback = rollback.json(&json!({ "version": 1 }));
    problem(send(rollback).await, ProblemKind::Timeout).await;

    drop(held_up);
    let is_free = async { while put().await.status() != 200 {} };
    tokio::time::timeout(Duration::from_secs(20), is_free)
        .await
        .unwrap();
}
