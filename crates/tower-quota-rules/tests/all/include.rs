//! Tests of documents that include another.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::io;

use tower_quota_rules::{Document, Problems, Rules, StoreFailureRule};

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
        "limits: [{ name: own, quota: 1/second, describe_key: 'include: org.yaml' }]",
        "limits: [] # include: org.yaml\ntests: [{ request: { path: /include }, expect: {} }]",
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
    let overrides =
        format!("{organisation}\noverrides: {{ 192.0.2.9: {{ limits: {{ all: 1/second }} }} }}");
    assert_eq!(names(own, &overrides), ["all ip", "own header x-user"]);
    let without = "limits: [{ name: own, quota: 1/second }]";
    let by_user = format!("{organisation}\ndefaults: {{ key: header x-user }}");
    assert_eq!(
        names(without, &by_user),
        ["all header x-user", "own header x-user"]
    );
}

/// Returns the names of the limits of a merged document.
fn names(merged: Result<Option<String>, Problems>) -> Vec<String> {
    let merged = Document::parse(&merged.unwrap().unwrap()).unwrap();
    let limits = merged.limits.iter();
    limits.map(|limit| limit.name.to_string()).collect()
}

#[test]
fn each_field_of_own_document_is_kept() {
    let own = "
include: org.yaml
version: 1
defaults: { key: header x-api-key }
client_ip: { hops: 1 }
trusted_headers: [x-plan]
instances: 4
close_after: 20
regions: { eu: 30 }
former_regions: [{ eu: 40 }]
limits: [{ name: own, quota: 1/second }]
tiers: { pro: { limits: { own: 9/second } } }
assign: [{ key: 'pro_*', tier: pro }]
overrides: { ann: { tier: pro } }
routes: [{ match: { path: /a }, limits: [{ name: route, quota: 1/second }] }]
block: [{ key: bad }]
allow_empty: true
tests: [{ request: {}, expect: { outcome: counted } }]
end: true
";
    let schema = tower_quota_rules::schema();
    for field in schema.as_value()["properties"].as_object().unwrap().keys() {
        let is_refused = ["skip", "allow"].contains(&field.as_str());
        assert!(
            is_refused || own.contains(&format!("\n{field}: ")),
            "{field}"
        );
    }
    let organisation = "limits: [{ name: all, quota: 9/second, key: none }]\nend: true";
    let merged = merged(own, organisation).unwrap().unwrap();
    let mut merged = Document::parse(&merged).unwrap();
    assert_eq!(merged.limits.remove(0).name.as_str(), "all");
    let mut own = Document::parse(own).unwrap();
    own.include = None;
    assert_eq!(merged, own);
}

#[test]
fn own_defaults_leave_choices_of_limits_alone() {
    let own = "
include: org.yaml
defaults: { on_store_failure: refuse }
limits: [{ name: own, quota: 9/second, when_degraded: 1/second }, { name: other, quota: 9/second }]
";
    let merged = merged(own, "limits: [{ name: all, quota: 9/second }]");
    let rules = Rules::parse(&merged.unwrap().unwrap()).unwrap();
    let limits = rules.document().limits.iter();
    let choices: Vec<_> = limits.map(|limit| limit.on_store_failure).collect();
    assert_eq!(choices, [None, None, Some(StoreFailureRule::Refuse)]);
}

#[test]
fn marks_and_line_ends_of_windows_are_read() {
    let own = "\u{feff}include: org.yaml\r\nlimits:\r\n  - name: own\r\n    quota: 1/second\r\nend: true\r\n";
    let organisation = "\u{feff}limits:\r\n  - name: all\r\n    quota: 9/second\r\nend: true\r\n";
    assert_eq!(names(merged(own, organisation)), ["all", "own"]);
    let said = said(&own.replace("own", "all"), organisation);
    assert!(said.contains("line 3, column 11: limits[0].name"), "{said}");
}

#[test]
fn caller_bounds_each_text_and_the_merged_text() {
    let own = "include: org.yaml\nlimits: [{ name: own, quota: 1/second }]";
    let small = "limits: [{ name: all, quota: 9/second }]";
    let large = format!("# {}\n{small}", "x".repeat(17 << 20));
    let merged = |most: usize, organisation: &str| {
        Document::merged(own, most, |_| Ok(organisation.to_owned()))
    };
    assert_eq!(names(merged(18 << 20, &large)), ["all", "own"]);
    for (most, organisation, expected) in [
        (16 << 20, &*large, "at most 16777216 are read"),
        (100, small, "the merged document has"),
    ] {
        let said = merged(most, organisation).unwrap_err().to_string();
        assert!(
            said.contains(expected) && said.contains("line 1, column 10: include"),
            "{said}"
        );
    }
}

#[test]
fn included_path_may_lead_to_folder_above() {
    let own = "include: ../shared/org.yaml\nlimits: [{ name: own, quota: 1/second }]";
    let merged = Document::merged(own, 10_000, |path| {
        assert_eq!(path.to_str(), Some("../shared/org.yaml"));
        Ok("limits: [{ name: all, quota: 9/second }]".to_owned())
    });
    assert_eq!(names(merged), ["all", "own"]);
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
        ("", "it is empty"),
        ("# Soon.\n", "it is empty"),
    ] {
        let said = said(text, organisation);
        assert!(said.contains(expected) && said.contains("line 1"), "{said}");
    }
    let long = " ".repeat(10_001);
    assert!(said(text, &long).contains("at most 10000 are read"));
    let missing = Document::merged(text, 10_000, |_| Err(io::ErrorKind::NotFound.into()));
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.contains("\"org.yaml\" cannot be included")
            && missing.contains("path from the folder of this document"),
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

#[test]
fn override_replaces_no_tier_of_the_organisation() {
    let organisation = "
limits: [{ name: flood, quota: 50/second }]
tiers: { abuser: { limits: { flood: 1/second } } }
assign: [{ when: { network: 10.0.0.0/8 }, tier: abuser }]
";
    let own = "
include: org.yaml
limits: [{ name: search, quota: 5/second }]
tiers: { vip: { limits: { search: 50/second } } }
overrides: { 10.1.1.1: { tier: vip } }
";
    let problems = merged(own, organisation).unwrap_err().to_string();
    assert!(problems.contains("would replace a tier"), "{problems}");
    let fixed = own.replace("{ tier: vip }", "{ limits: { search: 50/second } }");
    assert!(merged(&fixed, organisation).is_ok());
}
