//! Tests of the commands that work on files.

use std::io::Write;
use std::process::Stdio;

use crate::command::{Files, Ran, command, run};

const GOOD: &str = "
defaults: { key: [header x-api-key, client_ip] }
limits:
  - name: minute
    quota: 100/minute
tiers: { pro: { limits: { minute: 1000/minute } } }
assign: [{ key: 'sk_pro_*', tier: pro }]
skip: [{ path: /healthz }]
tests:
  - { request: { headers: { x-api-key: sk_pro_1 } }, expect: { tier: pro, limits: { minute: 1000/minute } } }
  - { request: { path: /healthz }, expect: { outcome: skipped } }
";

#[test]
fn check_of_good_rules_succeeds() {
    let files = Files::new();
    let good = files.write("good.yaml", GOOD);
    assert_eq!(run(&["check", &good]).expect(0), format!("{good}: ok\n"));
    let checked = run(&["check", &good, "--json"]).json(0);
    assert_eq!(
        (&checked[0]["valid"], &checked[0]["problems"]),
        (&true.into(), &serde_json::json!([]))
    );
}

#[test]
fn check_shows_every_problem_with_its_line() {
    let files = Files::new();
    let bad = files.write(
        "bad.yaml",
        "limits:\n  - name: minute\n    qouta: 100/minute\n  - name: day\n    quota: much\n",
    );
    let out = run(&["check", &bad]).expect(1);
    for part in [
        "bad.yaml:3:",
        "bad.yaml:5:12",
        "qouta",
        "quota: much",
        "problems: 2",
        "help",
    ] {
        assert!(out.contains(part), "{part} is missing:\n{out}");
    }
    let checked = run(&["--json", "check", &bad]).json(1);
    assert_eq!(
        (&checked[0]["valid"], &checked[0]["problems"][0]["line"]),
        (&false.into(), &3.into())
    );
}

#[test]
fn check_of_rules_without_limits_fails() {
    let files = Files::new();
    for empty in ["", "# all commented out\n"] {
        let empty = files.write("empty.yaml", empty);
        let out = run(&["check", &empty]).expect(1);
        assert!(
            out.contains("no limit") && out.contains("allow_empty"),
            "{out}"
        );
    }
}

#[test]
fn rules_from_standard_input_are_checked() {
    let mut child = command(&["check", "-"]);
    let mut child = child
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(br#"{ "limits": [{ "name": "minute", "quota": "100/minute" }] }"#)
        .unwrap();
    assert_eq!(
        Ran::of(child.wait_with_output().unwrap()).expect(0),
        "standard input: ok\n"
    );
}

#[test]
fn parts_of_code_have_stand_ins() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: minute, quota: 100/minute, key: code tenant }]",
    );
    assert!(run(&["check", &rules]).expect(1).contains("tenant"));
    run(&["check", &rules, "--code", "key=tenant"]).expect(0);
}

#[test]
fn failing_rules_tests_set_exit_code() {
    let files = Files::new();
    let good = files.write("good.yaml", GOOD);
    for command in ["check", "test"] {
        let checked = run(&[command, &good, "--json"]).json(0);
        assert_eq!(checked[0]["tests"]["passed"], 2);
    }
    let wrong = files.write(
        "wrong.yaml",
        GOOD.replace(
            "tier: pro, limits: { minute: 1000/minute }",
            "limits: { minute: 7/minute }",
        ),
    );
    // A service would reject the rules.
    let out = run(&["check", &wrong]).expect(1);
    assert!(
        out.contains("test 0 failed")
            && out.contains("7/minute")
            && out.ends_with("wrong.yaml: failed tests: 1\n"),
        "{out}"
    );
    let checked = run(&["check", &wrong, "--json"]).json(1);
    assert_eq!(checked[0]["valid"], false);
    assert_eq!(checked[0]["tests"]["passed"], 1);
    assert_eq!(checked[0]["tests"]["failures"][0]["test"], 0);
}

#[test]
fn diff_ignores_format_and_finds_changes() {
    let files = Files::new();
    let yaml = files.write("rules.yaml", GOOD);
    let json = files.write(
        "rules.json",
        r#"{ "defaults": { "key": ["header x-api-key", "client_ip"] },
        "limits": [{ "name": "minute", "quota": "100/minute" }],
        "tiers": { "pro": { "limits": { "minute": "1000/minute" } } },
        "assign": [{ "key": "sk_pro_*", "tier": "pro" }], "skip": [{ "path": "/healthz" }],
        "tests": [
          { "request": { "headers": { "x-api-key": "sk_pro_1" } },
            "expect": { "tier": "pro", "limits": { "minute": "1000/minute" } } },
          { "request": { "path": "/healthz" }, "expect": { "outcome": "skipped" } }
        ] }"#,
    );
    assert_eq!(run(&["diff", &yaml, &json]).expect(0), "no differences\n");
    let changed = files.write("changed.yaml", GOOD.replace("100/minute\n", "200/minute\n"));
    assert_eq!(
        run(&["diff", &json, &changed]).expect(1),
        "~ limits[minute].quota: 100/minute -> 200/minute\n"
    );
    let differences = run(&["diff", &json, &changed, "--json"]).json(1);
    assert_eq!(
        (&differences[0]["change"], &differences[0]["after"]),
        (&"changed".into(), &"200/minute".into())
    );
}

#[test]
fn explain_by_file_names_tier_and_limits() {
    let files = Files::new();
    let rules = files.write("rules.yaml", GOOD);
    let out = run(&[
        "explain",
        "--rules",
        &rules,
        "--header",
        "x-api-key: sk_pro_9",
    ])
    .expect(0);
    assert!(
        out.starts_with("outcome: counted\ntier: pro\n") && out.contains("1000/minute"),
        "{out}"
    );
    assert!(!out.contains("sk_pro_9"), "keys are hashed: {out}");
    let out = run(&[
        "explain",
        "--rules",
        &rules,
        "--header",
        "x-api-key: sk_pro_9",
        "--show-keys",
    ])
    .expect(0);
    assert!(out.contains("sk_pro_9"), "{out}");
    let json = run(&["explain", "--rules", &rules, "--path", "/healthz", "--json"]).json(0);
    assert_eq!(json["outcome"], "skipped");
}

#[test]
fn explain_prints_what_the_request_leaves_open() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: minute, quota: 9/minute, key: [code tenant, client_ip] }]",
    );
    let explain = ["explain", "--rules", &rules, "--code", "key=tenant"];
    let out = run(&explain).expect(0);
    assert!(
        out.contains("unknown") && out.contains("`code tenant`"),
        "{out}"
    );
    let given = [&explain[..], &["--key", "code tenant: Acme", "--show-keys"]].concat();
    let out = run(&given).expect(0);
    assert!(!out.contains("unknown") && out.contains("Acme"), "{out}");
}

#[test]
fn schema_and_completions_are_printed() {
    let schema: serde_json::Value = serde_json::from_str(&run(&["schema"]).expect(0)).unwrap();
    assert!(schema["properties"]["limits"].is_object());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            run(&["completions", shell]).expect(0).contains("simulate"),
            "{shell}"
        );
    }
}

#[test]
fn reader_that_has_gone_is_no_failure() {
    for arguments in [["completions", "bash"].as_slice(), &["schema"]] {
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(Ran::of(child.wait_with_output().unwrap()).expect(0), "");
    }
}

#[test]
fn wrong_arguments_and_files_exit_with_two() {
    assert_eq!(run(&["chekc"]).code, 2);
    let missing = run(&["check", "/nowhere.yaml"]);
    assert!(missing.error.contains("/nowhere.yaml"), "{}", missing.error);
    assert_eq!(missing.code, 2);
    let untargeted = run(&["history", "--json"]);
    assert_eq!(
        (untargeted.code, untargeted.error.starts_with("{\"error\":")),
        (2, true),
        "{}",
        untargeted.error
    );
}

#[test]
fn check_and_diff_name_lost_limits() {
    let files = Files::new();
    let two =
        "limits: [{ name: minute, quota: 9/minute }, { name: day, quota: 99/day }]\nend: true\n";
    let old = files.write("old.yaml", two);
    let one = "limits: [{ name: minute, quota: 9/minute }]\n";
    let new = files.write("new.yaml", format!("{one}end: true\n"));
    let out = run(&["check", "--old", &old, &new]).expect(0);
    assert!(
        out.contains("the limit \"day\" of the old rules is gone"),
        "{out}"
    );
    run(&["check", "--strict", "--old", &old, &new]).expect(1);
    let out = run(&["diff", &old, &new]).expect(1);
    assert!(out.ends_with("limits gone: day\n"), "{out}");
    let out = run(&["diff", &new, &old]).expect(1);
    assert!(!out.contains("gone"), "{out}");
    let cut = files.write("cut.yaml", one);
    run(&["check", &cut]).expect(0);
    let out = run(&["check", "--old", &old, &cut]).expect(1);
    assert!(
        out.contains("ends before its last line `end: true`"),
        "{out}"
    );
}

#[test]
fn included_file_is_merged_before_use() {
    let files = Files::new();
    files.write(
        "org.yaml",
        "limits: [{ name: everyone, quota: 99/second, key: none }]\n",
    );
    let own = "include: org.yaml\nlimits: [{ name: minute, quota: 9/minute }]\n";
    let rules = files.write("rules.yaml", own);
    run(&["check", &rules]).expect(0);
    let explained = run(&["explain", "--rules", &rules, "--json"]).json(0);
    let names = [
        &explained["limits"][0]["name"],
        &explained["limits"][1]["name"],
    ];
    assert_eq!(names, ["everyone", "minute"]);
    let loose = files.write("loose.yaml", own.replace("minute,", "everyone,"));
    let failed = run(&["check", &loose]);
    let text = failed.error + &failed.out;
    assert!(
        failed.code == 1 && text.contains("give yours another name"),
        "{text}"
    );
    assert!(text.contains("loose.yaml:2:18"), "{text}");
}

#[test]
fn explain_says_what_gives_tier_and_quota() {
    let files = Files::new();
    let text = "
limits: [{ name: minute, quota: 9/minute }]
tiers: { pro: { limits: { minute: 90/minute } } }
assign: [{ when: { claim: { plan: pro } }, tier: pro }, { tier: code plan }]
";
    let rules = files.write("rules.yaml", text);
    let explain = [
        "explain",
        "--rules",
        &rules,
        "--code",
        "claim=plan",
        "--code",
        "tier=plan",
    ];
    let out = run(&explain).expect(0);
    assert!(
        out.contains("assumed") && out.contains("192.0.2.1"),
        "{out}"
    );
    let given = [
        "--key",
        "claim plan: pro",
        "--address",
        "192.0.2.7",
        "--json",
    ];
    let explained = run(&[&explain[..], &given].concat()).json(0);
    assert_eq!(explained["tier_from"], "assign[0]");
    assert_eq!(explained["limits"][0]["source"], "tier pro");
    assert!(explained["assumed_address"].is_null(), "{explained}");
}
