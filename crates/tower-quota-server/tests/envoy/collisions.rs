//! Two descriptors share a counter only if they are the same.

use proptest::prelude::*;

use crate::support::{World, limits};
use tower_quota_server::messages::descriptors::RateLimitDescriptor;
use tower_quota_server::messages::descriptors::rate_limit_descriptor::{Entry, RateLimitOverride};
use tower_quota_server::messages::ratelimit::RateLimitRequest;
use tower_quota_server::messages::ratelimit::rate_limit_response::Code;

type Entries = Vec<(String, String)>;

/// Entries of characters that separate parts in other formats.
fn entries() -> impl Strategy<Value = Entries> {
    let part = "[a_.*:\u{0}\u{1}\u{2}]{0,3}";
    prop::collection::vec((part, part), 1..4)
}

fn request(entries: &Entries) -> RateLimitRequest {
    let entries = entries.iter().map(|(key, value)| Entry {
        key: key.clone(),
        value: value.clone(),
    });
    let descriptor = RateLimitDescriptor {
        entries: entries.collect(),
        limit: Some(RateLimitOverride {
            requests_per_unit: 1,
            unit: 4,
        }),
        ..RateLimitDescriptor::default()
    };
    RateLimitRequest {
        domain: "shop".into(),
        descriptors: vec![descriptor],
        hits_addend: 0,
    }
}

proptest! {
    #[test]
    fn different_descriptors_have_different_counters(one in entries(), other in entries()) {
        let world = World::new("shop", limits("tree"));
        let passes = |entries| world.send(&request(entries)).unwrap().overall_code() == Code::Ok;
        prop_assert!(passes(&one));
        prop_assert_eq!(passes(&other), one != other);
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
    let config = tower_quota_server::envoy::EnvoyConfig::parse(files, false).unwrap();
    let world = World::new("x", config);
    for (domain, code) in [
        ("x", Code::Ok),
        ("xa", Code::Ok),
        ("x", Code::OverLimit),
        ("xa", Code::OverLimit),
    ] {
        let request = crate::support::request(domain, &["a=v"]);
        assert_eq!(
            world.send(&request).unwrap().overall_code(),
            code,
            "{domain}"
        );
    }
}
