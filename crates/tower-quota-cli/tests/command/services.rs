//! Tests of commands on running services.

use std::io::{Read, Write};

use tower_quota_dev::TlsFiles;

use crate::command::{Files, Ran, command, run};
use crate::service::{TOKEN, TestService};

const RULES: &str = "\
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 3/minute }]
tiers: { pro: { limits: { minute: 30/minute } } }
assign: [{ key: \"pro_*\", tier: pro }]
";

/// The target of a command, an admin API with a token.
struct TestTarget {
    variables: Vec<(&'static str, String)>,
}

impl TestTarget {
    fn admin(service: &TestService) -> Self {
        Self {
            variables: vec![
                ("TOWER_QUOTA_ADMIN", service.admin.clone()),
                ("TOWER_QUOTA_TOKEN", TOKEN.into()),
            ],
        }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(
            command(arguments)
                .envs(self.variables.clone())
                .output()
                .unwrap(),
        )
    }
}

/// Puts rules, changes the rules, and rolls back.
fn change_rules(target: &TestTarget) {
    let files = Files::new();
    let first = files.write("first.yaml", RULES);
    let second = files.write(
        "second.json",
        r#"{ "limits": [{ "name": "minute", "quota": "5/minute", "key": "header x-api-key" }] }"#,
    );
    let bad = files.write("bad.yaml", "limits: [{ name: minute, quota: much }]");
    assert_eq!(
        target
            .run(&["put", &first, "--comment", "the first é"])
            .expect(0),
        "version 1 is in force\n"
    );
    let put = target.run(&["put", &second, "--expect", "any", "--json"]);
    assert_eq!(put.json(0)["number"], 2);
    assert_eq!(
        target.run(&["show"]).expect(0),
        std::fs::read_to_string(&second).unwrap()
    );
    assert_eq!(target.run(&["show", "1"]).expect(0), RULES);

    let conflict = target.run(&["put", &first, "--expect", "1"]);
    assert!(
        conflict.code == 1 && conflict.error.contains('2'),
        "{}",
        conflict.error
    );
    let empty = files.write("empty.yaml", "");
    let empty = target.run(&["put", &empty, "--expect", "any"]);
    assert!(
        empty.code == 1 && empty.error.contains("no limit"),
        "{}",
        empty.error
    );
    let invalid = target.run(&["put", &bad, "--expect", "2"]);
    assert!(
        invalid.code == 1 && invalid.error.contains("limits[0].quota"),
        "{}",
        invalid.error
    );

    assert!(
        target
            .run(&["rollback", "1", "--expect", "2"])
            .expect(0)
            .contains("version 3 is in force")
    );
    let old = target.run(&["rollback", "2", "--expect", "2"]);
    assert!(old.code == 1 && old.error.contains('3'), "{}", old.error);
    let unasked = target.run(&["rollback", "2"]);
    assert!(
        unasked.code == 1 && unasked.error.contains("--expect 3"),
        "{}",
        unasked.error
    );
    assert_eq!(target.run(&["rollback", "99", "--expect", "any"]).code, 1);
    let history = target.run(&["history", "--json"]).json(0);
    assert_eq!(
        (history.as_array().unwrap().len(), &history[2]["comment"]),
        (3, &"the first é".into())
    );
    assert!(target.run(&["history"]).expect(0).contains("the first"));
    let changes = target.run(&["diff", "1", "2"]).expect(1);
    assert!(
        changes.contains("~ limits[minute].quota: 3/minute -> 5/minute\n"),
        "{changes}"
    );
    assert_eq!(
        target.run(&["diff", "3", &first]).expect(0),
        "no differences\n"
    );
    assert_eq!(target.run(&["diff", "1", "99"]).code, 1);
    let audit = target.run(&["audit", "--count", "1"]).expect(0);
    assert!(
        audit.contains("rollback") && audit.contains("version 3"),
        "{audit}"
    );
}

/// Puts rules after a colleague has put other rules.
fn put_over_a_colleague(target: &TestTarget) {
    let files = Files::new();
    let (file, colleague) = (files.path("rules.yaml"), files.write("hers.yaml", RULES));
    let file = file.to_str().unwrap();
    target.run(&["put", &colleague]).expect(0);
    let shown = target.run(&["show", "--output", file]).expect(0);
    assert_eq!(shown, format!("{file}: version 1\n"));
    assert_eq!(files.read("rules.yaml"), RULES);
    target.run(&["put", &colleague, "--expect", "1"]).expect(0);

    // The file is based on version 1.
    files.write("rules.yaml", RULES.replace("3/minute", "4/minute"));
    let refused = target.run(&["put", file]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.error.contains("newest version is 2"),
        "{}",
        refused.error
    );
    target.run(&["show", "--output", file]).expect(0);
    target.run(&["put", file]).expect(0);
    assert_eq!(
        target.run(&["put", file]).expect(0),
        "version 4 is in force\n"
    );

    // The copy does not name a base version.
    let copy = files.write("copy.yaml", RULES.replace("3/minute", "5/minute"));
    let refused = target.run(&["put", &copy]);
    assert_eq!(refused.code, 1);
    for part in ["--expect 4", "limits[minute].quota: 3/minute -> 5/minute"] {
        assert!(refused.error.contains(part), "{part}: {}", refused.error);
    }
    assert_eq!(target.run(&["history", "--json"]).json(0)[0]["number"], 4);
}

#[test]
fn put_of_unknown_origin_is_refused() {
    let service = TestService::start();
    put_over_a_colleague(&TestTarget::admin(&service));
}

const TWO_LIMITS: &str = "\
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 3/minute }, { name: hour, quota: 9/hour }]
";

#[test]
fn put_names_lost_limits_before_the_change() {
    let service = TestService::start();
    let (target, files) = (TestTarget::admin(&service), Files::new());
    let two = files.write("two.yaml", TWO_LIMITS);
    let less = files.write("less.yaml", RULES);
    target.run(&["put", &two]).expect(0);
    // There is no version 2 to replace, but the comparison comes first.
    let refused = target.run(&["put", &less, "--expect", "2"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.error.contains("limits gone: hour\n"),
        "{}",
        refused.error
    );

    for (expected, number) in [("1", 2), ("any", 4)] {
        let ran = target.run(&["put", &less, "--expect", expected, "--json"]);
        assert!(
            ran.error.contains("limits gone: hour\n"),
            "{expected}: {}",
            ran.error
        );
        assert_eq!(ran.json(0)["number"], number);
        target.run(&["put", &two, "--expect", "any"]).expect(0);
    }
    let mine = files.path("mine.yaml");
    let mine = mine.to_str().unwrap();
    target.run(&["show", "--output", mine]).expect(0);
    files.write("mine.yaml", RULES);
    let ran = target.run(&["put", mine]);
    for part in ["in place of version 5:\n", "limits gone: hour\n"] {
        assert_eq!(ran.error.matches(part).count(), 1, "{}", ran.error);
    }
    let out = ran.expect(0);
    assert!(out.ends_with("version 6 is in force\n"), "{out}");

    let ran = target.run(&["rollback", "5", "--expect", "6"]);
    assert!(ran.error.contains("limits[hour]"), "{}", ran.error);
    ran.expect(0);
}

#[test]
fn put_without_a_comparison_goes_on() {
    let service = TestService::start();
    let (target, files) = (TestTarget::admin(&service), Files::new());
    let rules = files.write("rules.yaml", RULES);
    target.run(&["put", &rules]).expect(0);
    service.store("limits: [{ name: minute, quota: much }]");
    let ran = target.run(&["put", &rules, "--expect", "any"]);
    let note = "note: the differences are unknown: version 2 cannot be used: error: \"much\"";
    assert!(
        ran.error.starts_with(note) && ran.error.lines().count() == 1,
        "{}",
        ran.error
    );
    ran.expect(0);
}

#[test]
fn recorded_version_holds_for_its_service_only() {
    let (first, second) = (TestService::start(), TestService::start());
    let (first, second) = (TestTarget::admin(&first), TestTarget::admin(&second));
    let files = Files::new();
    let rules = files.write("rules.yaml", RULES);
    for target in [&first, &second] {
        target.run(&["put", &rules]).expect(0);
    }
    first.run(&["show", "--output", &rules]).expect(0);
    let refused = second.run(&["put", &rules]);
    assert!(refused.error.contains("--expect 1"), "{}", refused.error);
    first.run(&["put", &rules]).expect(0);
}

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
fn wrong_token_is_refused() {
    let service = TestService::start();
    let ask = |token: Option<&str>| {
        let mut command = command(&["history", "--admin", &service.admin]);
        Ran::of(
            command
                .envs(token.map(|token| ("TOWER_QUOTA_TOKEN", token)))
                .output()
                .unwrap(),
        )
    };
    let (missing, wrong) = (ask(None), ask(Some("another token of 32 bytes length")));
    assert!(
        missing.code == 1 && missing.error.contains("TOWER_QUOTA_TOKEN"),
        "{}",
        missing.error
    );
    assert!(
        wrong.code == 1
            && !wrong.error.contains("another token")
            && wrong.error.contains("does not accept the token"),
        "{}",
        wrong.error
    );
    let files = Files::new();
    let file = files.write("token", format!("{TOKEN}\n"));
    Ran::of(
        command(&["history", "--admin", &service.admin, "--token-file", &file])
            .output()
            .unwrap(),
    )
    .expect(0);
}

#[test]
fn address_without_http_is_a_usage_error() {
    for address in ["ftp://127.0.0.1", "127.0.0.1:9000"] {
        let ran = Ran::of(command(&["history", "--admin", address]).output().unwrap());
        assert!(
            ran.code == 2 && ran.error.contains("https://HOST:PORT"),
            "{}",
            ran.error
        );
    }
}

#[test]
fn admin_api_over_https_needs_its_authority() {
    let (service, files) = (TestService::start(), TlsFiles::new());
    let address = service.serve_tls(&files);
    let run = |arguments: &[&str]| {
        let mut command = command(&["history", "--admin", &address]);
        Ran::of(
            command
                .args(arguments)
                .env("TOWER_QUOTA_TOKEN", TOKEN)
                .output()
                .unwrap(),
        )
    };
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    run(&["--ca", &path(files.certificate())]).expect(0);

    // The system does not trust the certificate, and a different certificate does not match.
    let another = TlsFiles::new();
    for arguments in [vec![], vec!["--ca".to_owned(), path(another.certificate())]] {
        let ran = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            ran.code == 3 && ran.error.contains("is not trusted") && ran.error.contains("--ca"),
            "{}",
            ran.error
        );
    }
    for unusable in [path(files.key()), "/nowhere.pem".to_owned()] {
        let ran = run(&["--ca", &unusable]);
        assert!(
            ran.code == 2 && ran.error.contains(&unusable),
            "{}",
            ran.error
        );
    }
}

#[test]
fn unreachable_service_exits_with_three() {
    // The port was free a moment ago, so no server listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = format!("http://{address}");
    let ran = run(&["history", "--admin", &target, "--timeout", "1s"]);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.error);
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
fn recorded_version_of_lost_rules_names_the_newest() {
    let (lost, files) = (TestService::start(), Files::new());
    let (file, target) = (files.write("rules.yaml", RULES), TestTarget::admin(&lost));
    target.run(&["put", &file]).expect(0);
    let mine = files.path("mine.yaml");
    let mine = mine.to_str().unwrap();
    target.run(&["show", "--output", mine]).expect(0);
    // The number is the number of another text, as after a restart of the store.
    let record = files.read("mine.yaml.version");
    files.write("mine.yaml.version", record.replacen('-', "-0", 1));
    let ran = target.run(&["put", mine]);
    assert!(
        ran.code == 1 && ran.error.contains("newest version is 1") && !ran.error.contains("ETag"),
        "{}",
        ran.error
    );
}

#[test]
fn port_of_a_service_is_no_admin_api() {
    let port = hello_port();
    for arguments in [&["show"][..], &["health"], &["top"]] {
        let mut command = command(arguments);
        let ran = Ran::of(command.env("TOWER_QUOTA_ADMIN", &port).output().unwrap());
        assert!(
            ran.code == 1 && ran.error.contains("admin API"),
            "{arguments:?} {}{}",
            ran.out,
            ran.error
        );
    }
}

/// Answers every connection with a text, and returns the address.
fn hello_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut start) = (client.unwrap(), [0; 1024]);
            let _ = client.read(&mut start);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n";
            let _ = client.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn rollback_to_the_newest_text_changes_nothing() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    let files = Files::new();
    let (first, second) = (
        files.write("first.yaml", RULES),
        files.write("second.yaml", RULES.replace("3/minute", "4/minute")),
    );
    target.run(&["put", &first]).expect(0);
    target.run(&["put", &second, "--expect", "1"]).expect(0);
    target.run(&["rollback", "1", "--expect", "2"]).expect(0);
    let out = target.run(&["rollback", "1", "--expect", "3"]).expect(0);
    assert_eq!(out, "no change: version 3 has the text of version 1\n");
    let history = target.run(&["history", "--json"]).json(0);
    assert_eq!(history[0]["number"], 3);
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

#[test]
fn put_is_compared_with_the_newest_rules() {
    let service = TestService::start();
    let target = TestTarget::admin(&service);
    let files = Files::new();
    target
        .run(&["put", &files.write("rules.yaml", RULES)])
        .expect(0);
    // The tests of the newest rules fail, so the rules before are in force.
    let failing = "tests: [{ request: {}, expect: { outcome: skipped } }]\n";
    service.store(&(RULES.replace("3/minute", "9/minute") + failing));
    let mine = files.write("mine.yaml", RULES.replace("3/minute", "4/minute"));
    let refused = target.run(&["put", &mine]);
    assert!(
        refused.code == 1
            && refused.error.contains("version 2 is the newest")
            && refused.error.contains("9/minute -> 4/minute"),
        "{}",
        refused.error
    );
}
