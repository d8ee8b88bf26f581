//! Tests of commands on the clients and the health of services.

use crate::command::Files;
use crate::service::TestService;
use crate::target::{RULES, TestTarget};
use crate::versions::change_rules;

#[test]
fn top_lists_the_counters_of_a_limit() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    target
        .run(&["put", &Files::new().write("rules.yaml", RULES)])
        .expect(0);
    for key in ["a&b é", "bob"] {
        for _ in 0..5 {
            service.ask(key);
        }
    }
    let counters = target.run(&["top", "--limit", "minute", "--json"]).json(0);
    assert_eq!(counters.as_array().unwrap().len(), 2);
    assert_eq!(counters[0]["status"]["capacity"], 3);
    assert_eq!(counters[0].get("key"), None);
    let arguments = ["top", "--limit", "minute", "--key-prefix", "a&b ", "--json"];
    let counters = target.run(&arguments).json(0);
    assert_eq!(counters.as_array().unwrap().len(), 1);
    assert_eq!(counters[0]["key"], "a&b é");
    let shown = target.run(&["top", "--limit", "minute"]).expect(0);
    assert!(shown.contains("status remaining"), "{shown}");
    let unknown = target.run(&["top", "--limit", "hour"]);
    assert!(unknown.error.contains("minute"), "{}", unknown.error);
}

#[test]
fn control_characters_are_not_printed() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    target
        .run(&["put", &Files::new().write("rules.yaml", RULES)])
        .expect(0);
    let reason = "a\u{1b}[2Jb\u{202e}c\nd";
    target
        .run(&["block", "ann", "--for", "1h", "--reason", reason])
        .expect(0);
    for list in ["blocks", "audit"] {
        let out = target.run(&[list]).expect(0);
        assert!(out.contains("a [2Jbc d"), "{out}");
    }
    let refused = target.run(&["peek", "\u{1b}[2J\u{202e}", "ann"]).error;
    assert!(!refused.contains(['\u{1b}', '\u{202e}']), "{refused:?}");
}

#[test]
fn key_that_was_never_seen_is_named() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    target
        .run(&["put", &Files::new().write("rules.yaml", RULES)])
        .expect(0);
    for arguments in [
        ["peek", "minute", "bbo"].as_slice(),
        &["block", "bbo", "--for", "1h"],
    ] {
        let out = target.run(arguments).expect(0);
        assert!(out.contains("an unknown client looks the same"), "{out}");
    }
    let out = target
        .run(&["block", "203.0.113.7", "--for", "1h"])
        .expect(0);
    assert!(!out.contains("an unknown client looks the same"), "{out}");
    service.ask("bob");
    for arguments in [
        ["peek", "minute", "bob"].as_slice(),
        &["block", "bob", "--for", "1h"],
    ] {
        let out = target.run(arguments).expect(0);
        assert!(!out.contains("an unknown client looks the same"), "{out}");
    }
}

/// Looks up a client, and blocks the client.
fn operate_clients(target: &TestTarget) {
    assert!(
        target
            .run(&["peek", "minute", "ann"])
            .expect(0)
            .contains("capacity: 3\nremaining: 3\n")
    );
    assert!(
        target
            .run(&["peek", "minute", "pro_1"])
            .expect(0)
            .contains("capacity: 30\nremaining: 30\n")
    );
    assert_eq!(
        target
            .run(&["grant", "minute", "ann", "1", "--json"])
            .json(0)["remaining"],
        3
    );
    target.run(&["reset", "minute", "ann"]).expect(0);
    assert_eq!(target.run(&["peek", "unknown", "ann"]).code, 1);

    let out = target
        .run(&["block", "ann", "--for", "1h", "--reason", "a test"])
        .expect(0);
    assert!(
        out.contains("kind: block\n") && out.contains("scope: header x-api-key\n"),
        "{out}"
    );
    assert!(out.contains("reach: "), "{out}");
    target
        .run(&["block", "203.0.113.0/24", "--for", "60s"])
        .expect(0);
    let blocks = target.run(&["blocks"]).expect(0);
    assert!(
        blocks.contains("a test") && blocks.contains("203.0.113.0/24"),
        "{blocks}"
    );
    let explained = target
        .run(&["explain", "--header", "x-api-key: ann"])
        .expect(1);
    assert!(explained.starts_with("outcome: blocked\n"), "{explained}");
    target.run(&["unblock", "203.0.113.0/24"]).expect(0);
    let removed = target.run(&["unblock", "ann"]).expect(0);
    assert!(
        removed.starts_with("reach: ") && removed.contains("a test"),
        "{removed}"
    );
    for (arguments, list) in [
        (["unblock", "ann"].as_slice(), "`tower-quota blocks`"),
        (
            &["override", "--remove", "one ann"],
            "`tower-quota overrides`",
        ),
    ] {
        let missing = target.run(arguments);
        let error = &missing.error;
        assert!(error.contains(list) && !error.contains("/v1/"), "{error}");
        assert_eq!(missing.code, 1);
    }
    assert_eq!(
        target.run(&["blocks", "--json"]).json(0),
        serde_json::json!([])
    );
    assert!(
        target
            .run(&["explain", "--header", "x-api-key: ann"])
            .expect(0)
            .contains("minute")
    );
}

/// Gives a client an override, and removes it.
fn override_clients(target: &TestTarget) {
    let capacity = || target.run(&["peek", "minute", "ann", "--json"]).json(0)["capacity"].take();
    let of_ann = [
        "override",
        "ann",
        "--limit",
        "minute",
        "--quota",
        "60/minute",
    ];
    let put = |more: &[&str]| target.run(&[&of_ann, more].concat());
    let made = put(&["--for", "2h", "--reason", "launch day"]).expect(0);
    assert!(
        made.contains("kind: override\n") && made.contains("quota: 60/minute\n"),
        "{made}"
    );
    assert_eq!(capacity(), 60);
    let listed = target.run(&["overrides"]).expect(0);
    assert!(
        listed.contains("minute") && listed.contains("launch day"),
        "{listed}"
    );
    let end_all = || {
        let listed = target.run(&["overrides", "--json"]).json(0);
        for id in listed.as_array().unwrap() {
            let end = ["override", "--remove", id["id"].as_str().unwrap()];
            target.run(&end).expect(0);
            assert_eq!(target.run(&end).code, 1);
        }
        assert_eq!(capacity(), 3);
    };
    end_all();
    let endless = put(&[]);
    assert!(
        endless.code == 1 && endless.error.contains("give --for, such as \"2h\""),
        "{}",
        endless.error
    );
    assert_eq!(put(&["--remove"]).code, 2);
    assert_eq!(
        put(&["--for", "2h", "--until", "2100-01-01T00:00:00Z"]).code,
        2
    );
    let grant = ["grant", "minute", "ann", "4", "--for", "1d"];
    assert_eq!(target.run(&grant).code, 2);
}

#[test]
fn block_on_one_instance_is_announced() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    target
        .run(&["put", &Files::new().write("rules.yaml", RULES)])
        .expect(0);
    for arguments in [
        ["block", "ann", "--for", "1h"].as_slice(),
        &[
            "override", "ann", "--limit", "minute", "--quota", "9/minute", "--for", "1h",
        ],
    ] {
        let run = target.run(arguments);
        let here = "this instance only, and lost when it restarts";
        assert!(
            run.error
                .contains(&format!("note: the change holds on {here}")),
            "{}",
            run.error
        );
        assert!(run.out.contains(&format!("reach: {here}\n")), "{}", run.out);
    }
}

#[test]
fn removal_on_one_instance_is_announced() {
    let service = TestService::start();
    let (target, files) = (TestTarget::admin(&service), Files::new());
    target
        .run(&["put", &files.write("rules.yaml", RULES)])
        .expect(0);
    target.run(&["block", "ann", "--for", "1h"]).expect(0);
    let change = [
        "override", "ann", "--limit", "minute", "--quota", "9/minute",
    ];
    let made = target.run(&[&change[..], &["--for", "1h", "--json"]].concat());
    let made = made.json(0);
    let id = made["id"].as_str().unwrap();
    for arguments in [["unblock", "ann"].as_slice(), &["override", "--remove", id]] {
        let run = target.run(arguments);
        let here = "this instance only, and lost when it restarts";
        let note = format!("note: the change holds on {here}\n");
        assert_eq!(run.error, note);
        let out = run.expect(0);
        assert!(out.contains(&format!("reach: {here}\n")), "{out}");
    }
}

#[test]
fn commands_work_by_the_admin_api() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    change_rules(&target);
    operate_clients(&target);
    override_clients(&target);
    assert!(
        target
            .run(&["health"])
            .expect(0)
            .contains("healthy: true\n")
    );

    let statuses: Vec<u16> = (0..5).map(|_| service.ask("bob")).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let limited = target.run(&["peek", "minute", "bob"]).expect(1);
    assert!(
        limited.contains("remaining: 0\n") && limited.contains("outcome: limited\nretry after: "),
        "{limited}"
    );
    let top = target.run(&["top", "--window", "1m"]).expect(0);
    assert!(top.contains("minute") && !top.contains("bob"), "{top}");
    assert!(
        target
            .run(&["top", "--show-keys"])
            .expect(0)
            .contains("bob")
    );
    assert_eq!(
        target.run(&["reset", "minute", "bob", "--json"]).json(0)["remaining"],
        3
    );
    assert_eq!(service.ask("bob"), 200);
}

#[test]
fn errors_name_options_of_the_command() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    let files = Files::new();
    let rules = files.write("rules.yaml", RULES);
    target.run(&["put", &rules]).expect(0);
    for (arguments, part) in [
        (&["put", &rules, "--expect", "none"][..], "--expect 1"),
        (&["block", "10.0.0.0/4", "--for", "1h"], "add --force"),
    ] {
        let ran = target.run(arguments);
        assert!(ran.code == 1 && ran.error.contains(part), "{}", ran.error);
        for word in ["If-Match", "If-None-Match", "ETag", "send", "true"] {
            assert!(!ran.error.contains(word), "{}", ran.error);
        }
    }
}

#[test]
fn unlimited_override_admits_everything() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    let rules = RULES.replace(
        "3/minute }",
        "3/minute }, { name: uploads, quota: 2 at once }",
    );
    target
        .run(&["put", &Files::new().write("rules.yaml", rules)])
        .expect(0);
    for (limit, capacity) in [("minute", 10_000_000), ("uploads", 10_000)] {
        let unlimited = ["--quota", "unlimited", "--for", "2h"];
        let of_ann = ["override", "ann", "--limit", limit];
        target.run(&[&of_ann[..], &unlimited].concat()).expect(0);
        let peeked = target.run(&["peek", limit, "ann", "--json"]).json(0);
        assert_eq!(peeked["capacity"], capacity);
    }
    assert!((0..50).all(|_| service.ask("ann") == 200));
}

#[test]
fn health_for_people_has_no_figures() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    target
        .run(&["put", &Files::new().write("rules.yaml", RULES)])
        .expect(0);
    let text = target.run(&["health"]).expect(0);
    assert!(text.starts_with("healthy: true\n"), "{text}");
    for part in ["rules in force number: 1", "mistakes: none"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    for part in ["reloads", "refusal cache", "hash", "shows keys"] {
        assert!(!text.contains(part), "{text}");
    }
    assert!(target.run(&["health", "--json"]).json(0)["rules"]["reloads"].is_object());
}
