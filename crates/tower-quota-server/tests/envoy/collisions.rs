//! Two descriptors share a counter only if they are the same.

use tower_quota_server::envoy::EnvoyConfig;
use tower_quota_server::messages::descriptors::rate_limit_descriptor::Entry;
use tower_quota_server::messages::ratelimit::rate_limit_response::Code;

use crate::support::{World, limits, request};

/// Returns all texts of at most one of the bytes that stand between parts.
const TEXTS: [&str; 4] = ["", "a", "\u{0}", "\u{1}"];

/// Returns all lists of one to three entries of these texts.
fn descriptors() -> Vec<Vec<Entry>> {
    let mut longest = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut longer = Vec::new();
        for before in &longest {
            for (key, value) in TEXTS.iter().flat_map(|key| TEXTS.map(|value| (key, value))) {
                let mut entries: Vec<Entry> = Vec::clone(before);
                entries.push(Entry {
                    key: (*key).to_owned(),
                    value: value.to_owned(),
                });
                longer.push(entries);
            }
        }
        all.extend(longer.iter().cloned());
        longest = longer;
    }
    all
}

#[test]
fn different_descriptors_have_different_counters() {
    let world = World::new("shop", limits("tree"));
    let descriptors = descriptors();
    assert_eq!(descriptors.len(), 16 + 256 + 4_096);
    for expected in [Code::Ok, Code::OverLimit] {
        for entries in &descriptors {
            let mut request = request("shop", &["limit:1/DAY"]);
            request.descriptors[0].entries.clone_from(entries);
            let response = world.send(&request).unwrap();
            assert_eq!(response.overall_code(), expected, "{entries:?}");
        }
    }
}

#[test]
fn domains_have_different_counters() {
    let text = |domain: &str| {
        format!(
            "domain: {domain}\ndescriptors: [{{key: a, rate_limit: {{unit: day, requests_per_unit: 1}}}}]\n"
        )
    };
    let texts = [text("x"), text("xa")];
    let files = texts.iter().map(|text| ("limits.yaml", text.as_str()));
    let config = EnvoyConfig::parse(files, false).unwrap();
    let world = World::new("x", config);
    for (domain, code) in [
        ("x", Code::Ok),
        ("xa", Code::Ok),
        ("x", Code::OverLimit),
        ("xa", Code::OverLimit),
    ] {
        let request = request(domain, &["a=v"]);
        assert_eq!(
            world.send(&request).unwrap().overall_code(),
            code,
            "{domain}"
        );
    }
}
