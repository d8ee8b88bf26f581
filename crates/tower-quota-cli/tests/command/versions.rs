//! Tests of commands on versions of rules: put, rollback, show and history.

use crate::command::Files;
use crate::service::TestService;
use crate::target::{RULES, TestTarget};

/// Puts rules, changes the rules, and rolls back.
pub(crate) fn change_rules(target: &TestTarget) {
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
