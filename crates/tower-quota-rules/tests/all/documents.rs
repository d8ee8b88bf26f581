//! Tests that read, print and compile documents.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may panic"
)]

use tower_quota::{MemoryStore, Quota, RateLimitLayer};
use tower_quota_rules::Rules;

const SKETCH: &str = include_str!("../good/sketch.yaml");

#[test]
fn three_lines_are_a_document() {
    let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n").expect("valid");
    assert_eq!(
        rules.document().limits[0].quota.quota(),
        &Quota::per_minute(100)
    );
    assert!(rules.warnings().is_empty(), "{}", rules.warnings());
}

#[test]
fn document_without_limits_is_refused() {
    for text in [
        "",
        "# all commented out\n",
        "limits:\n# - { name: minute, quota: 100/minute }\n",
        "routes: [{ match: { path: /a }, limits: [] }]",
        "block: [{ network: 192.0.2.0/24 }]",
    ] {
        let problems = Rules::parse(text).expect_err(text);
        let said = problems.to_string();
        assert!(said.contains("allow_empty"), "{text}: {said}");
        let meant = format!("allow_empty: true\n{text}");
        Rules::parse(&meant).unwrap_or_else(|problems| panic!("{problems}"));
    }
    assert!(Rules::parse("{}").is_err());
    let bad = Rules::parse("limits: [{ quota: 100/minute }]");
    let said = bad.expect_err("no name").to_string();
    assert!(!said.contains("allow_empty"), "{said}");
}

#[test]
fn sketch_prints_back() {
    let rules = Rules::parse(SKETCH)
        .unwrap_or_else(|problems| panic!("{}", problems.render(SKETCH, "sketch.yaml")));
    let text = rules.document().to_text();
    let again = Rules::parse(&text)
        .unwrap_or_else(|problems| panic!("{text}\n{}", problems.render(&text, "printed")));
    assert_eq!(again.document(), rules.document(), "{text}");
}

#[tokio::test]
async fn named_client_has_quota_of_its_key() {
    let text = "\
defaults: { key: [header x-api-key, client_ip] }
limits:
  - { name: minute, quota: 5/minute }
  - { name: address, quota: 7/minute, key: client_ip }
  - { name: user, quota: 9/minute, key: header x-user }
tiers:
  pro: { limits: { minute: 50/minute, user: 90/minute } }
assign:
  - { key: \"pro_*\", tier: pro }
overrides:
  pro_vip: { limits: { minute: 500/minute } }
  203.0.113.7: { limits: { minute: 60/minute, address: 70/minute } }
";
    let rules = Rules::parse(text).expect("valid");
    let live = RateLimitLayer::new(MemoryStore::new(), rules.policy()).handle();
    for (limit, client, expected) in [
        ("minute", "ann", 5),
        ("minute", "pro_1", 50),
        ("minute", "pro_vip", 500),
        ("minute", "203.0.113.7", 60),
        ("address", "203.0.113.7", 70),
        // The limit's key does not determine the tier.
        ("user", "pro_1", 9),
    ] {
        assert_eq!(
            live.peek(limit, client).await.expect("a status").limit,
            expected,
            "{limit} {client}"
        );
    }
}
