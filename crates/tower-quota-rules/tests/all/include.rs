//! Tests of documents that include another.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::io;

use tower_quota_rules::{Document, Problems, Rules};

const ORGANISATION: &str = "
limits: [{ name: everyone, quota: 5000/second, key: none }, { name: client, quota: 100/minute }]
tiers: { pro: { limits: { client: 1000/minute } } }
assign: [{ key: 'pro_*', tier: pro }]
defaults: { key: header x-api-key, missing: share }
skip: [{ path: /healthz }]
tests: [{ request: { path: / }, expect: { limits: { everyone: 5000/second, client: 100/minute } } }]
";

fn merged(text: &str, organisation: &str) -> Result<Option<String>, Problems> {
    Document::merged(text, 10_000, |path| {
        assert_eq!(path.to_str(), Some("org.yaml"));
        Ok(organisation.to_owned())
    })
}

fn said(text: &str, organisation: &str) -> String {
    merged(text, organisation).unwrap_err().to_string()
}

#[test]
fn included_limits_come_first_and_keep_their_meaning() {
    let text = "
include: org.yaml
limits: [{ name: search, quota: 10/second, when: { path: /search } }]
tiers: { pro: { limits: { search: 50/second } } }
defaults: { missing: skip }
tests:
  - request: { path: /search, headers: { x-api-key: pro_1 } }
    expect: { tier: pro, limits: { everyone: 5000/second, client: 1000/minute, search: 50/second } }
  - { request: { path: /search }, expect: { limits: { everyone: 5000/second, client: 100/minute } } }
  - { request: { path: /healthz }, expect: { outcome: skipped } }
";
    let text = merged(text, ORGANISATION).unwrap().unwrap();
    let rules = Rules::parse(&text).unwrap();
    let report = rules.test();
    assert_eq!(
        (report.passed, report.is_passed()),
        (3, true),
        "{report}\n{text}"
    );
    let names: Vec<&str> = rules
        .document()
        .limits
        .iter()
        .map(|rule| rule.name.as_str())
        .collect();
    assert_eq!(names, ["everyone", "client", "search"]);
}

#[test]
fn document_without_include_is_left_as_it_is() {
    for text in [
        "limits: []",
        "# include: org.yaml\nlimits: []",
        "limits: [{ name: include }]",
    ] {
        assert_eq!(merged(text, ORGANISATION).unwrap(), None, "{text}");
    }
}

#[test]
fn service_cannot_loosen_included_limits() {
    for (text, place, expected) in [
        (
            "limits: [{ name: client, quota: 9/second }]",
            "limits[0].name",
            "has a limit \"client\"",
        ),
        (
            "skip: [{ path: / }]",
            "skip",
            "would pass the included limits too",
        ),
        (
            "allow: [{ path: / }]",
            "allow",
            "would pass the included limits too",
        ),
        (
            "overrides: { ann: { limits: { client: unlimited } } }",
            "overrides.ann.limits.client",
            "other quotas of \"client\"",
        ),
        (
            "tiers: { max: { limits: { client: 9/second } } }",
            "tiers.max.limits.client",
            "other quotas of \"client\"",
        ),
        (
            "tiers: { pro: { extends: max }, max: {} }",
            "tiers.pro.extends",
            "has the tier \"pro\"",
        ),
        (
            "assign: [{ key: '*', tier: pro }]",
            "assign[0].tier",
            "another quota of \"client\"",
        ),
        (
            "tiers: { mine: { extends: pro } }\noverrides: { ann: { tier: mine } }",
            "overrides.ann.tier",
            "another quota of \"client\"",
        ),
        (
            "defaults: { key: client_ip }\noverrides: { 192.0.2.1: {} }",
            "defaults.key",
            "mean the key of",
        ),
    ] {
        let said = said(&format!("include: org.yaml\n{text}\n"), ORGANISATION);
        assert!(
            said.contains(&format!(" {place}: ")) && said.contains(expected),
            "{text}: {said}"
        );
        assert!(said.contains("line 2") || said.contains("line 3"), "{said}");
    }
}

#[test]
fn each_document_keeps_its_default_key() {
    let names = |own: &str, organisation: &str| -> Vec<String> {
        let text = merged(&format!("include: org.yaml\n{own}"), organisation)
            .unwrap()
            .unwrap();
        let rules = Rules::parse(&text).unwrap();
        let request = http::Request::get("/").header("x-user", "ann");
        let request = request
            .extension(std::net::IpAddr::from([192, 0, 2, 7]))
            .body(())
            .unwrap();
        let explained = rules.explain(&tower_quota::RequestHead::of(&request));
        let limits = explained.limits.into_iter();
        limits
            .map(|limit| format!("{} {}", limit.name, limit.scope))
            .collect()
    };
    let own = "limits: [{ name: own, quota: 1/second }]\ndefaults: { key: header x-user }";
    let organisation = "limits: [{ name: all, quota: 9/second }]";
    assert_eq!(names(own, organisation), ["all ip", "own header x-user"]);
    let blocks = format!("{organisation}\nblock: [{{ key: 192.0.2.9 }}]");
    assert_eq!(names(own, &blocks), ["all ip", "own header x-user"]);
    let without = "limits: [{ name: own, quota: 1/second }]";
    let by_user = format!("{organisation}\ndefaults: {{ key: header x-user }}");
    assert_eq!(
        names(without, &by_user),
        ["all header x-user", "own header x-user"]
    );
}

#[test]
fn unusable_include_is_explained() {
    let text = "include: org.yaml\nlimits: [{ name: own, quota: 1/second }]\nend: true\n";
    for (organisation, expected) in [
        (
            "limits: [{ name: all, quota: 9/second }]",
            "ends before its last line `end: true`",
        ),
        (
            "include: other.yaml\nend: true",
            "it includes another document",
        ),
        (
            "limits: [{ nam: all }]\nend: true",
            "there is no field \"nam\" here",
        ),
    ] {
        let said = said(text, organisation);
        assert!(said.contains(expected) && said.contains("line 1"), "{said}");
    }
    let long = " ".repeat(10_001);
    assert!(said(text, &long).contains("more than 10000 bytes"));
    let missing = Document::merged(text, 10_000, |_| Err(io::ErrorKind::NotFound.into()));
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.contains("\"org.yaml\" cannot be included"),
        "{missing}"
    );
    let absolute = text.replace("org.yaml", "/etc/org.yaml");
    let absolute = said(&absolute, "").to_string();
    assert!(absolute.contains("not relative"), "{absolute}");
    let raw = Rules::parse(text).unwrap_err().to_string();
    assert!(
        raw.contains("only a file can include \"org.yaml\""),
        "{raw}"
    );
    let two = merged("include: org.yaml\ninstances: 2", "instances: 3")
        .unwrap_err()
        .to_string();
    assert!(two.contains("\"org.yaml\" has another value"), "{two}");
}
