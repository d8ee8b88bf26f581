//! Tests what a document says about the reason of a decision.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::net::IpAddr;

use http::Request;
use tower_quota::RequestHead;
use tower_quota::key::{self, KeyExtractor};
use tower_quota_rules::{ListName, Rules};

const DOCUMENT: &str = "\
defaults: { key: [header x-api-key, client_ip] }
limits:
  - { name: minute, quota: 5/minute }
  - { name: day, quota: 100/day }
tiers:
  pro: { limits: { minute: 50/minute } }
assign: [{ key: \"pro_*\", tier: pro }]
overrides:
  pro_vip: { limits: { minute: 500/minute } }
allow: [{ key: \"in_*\" }]
block:
  - { key: \"bad_*\" }
  - { network: 198.51.100.0/24 }
  - { path: /old }
";

fn rules() -> Rules {
    Rules::parse(DOCUMENT).unwrap()
}

fn request(path: &str, api_key: &str, address: [u8; 4]) -> Request<()> {
    let request = Request::get(path).header("x-api-key", api_key);
    request.extension(IpAddr::from(address)).body(()).unwrap()
}

#[test]
fn explanation_names_source_of_each_quota() {
    let rules = rules();
    for (api_key, expected) in [
        ("free_1", ["limit", "limit"]),
        ("pro_1", ["tier pro", "limit"]),
        ("pro_vip", ["override", "limit"]),
    ] {
        let request = request("/", api_key, [192, 0, 2, 1]);
        let explanation = rules.explain(&RequestHead::of(&request));
        let sources = explanation
            .limits
            .iter()
            .map(|limit| limit.source.to_string());
        assert_eq!(sources.collect::<Vec<_>>(), expected, "{api_key}");
        let key = key::header("x-api-key").key_of(api_key);
        let source = rules.quota_source_by_key("minute", &key);
        assert_eq!(source.to_string(), expected[0], "{api_key}");
    }
}

#[test]
fn entry_of_request_is_the_first_match() {
    let rules = rules();
    let peer = [192, 0, 2, 1];
    for (request, allow, block) in [
        (request("/", "free_1", peer), None, None),
        (request("/", "in_1", peer), Some(0), None),
        (request("/old", "bad_1", [198, 51, 100, 7]), None, Some(0)),
        (request("/old", "free_1", [198, 51, 100, 7]), None, Some(1)),
        (request("/old", "free_1", peer), None, Some(2)),
    ] {
        let head = RequestHead::of(&request);
        assert_eq!(rules.entry(ListName::Allow, &head), allow, "{request:?}");
        assert_eq!(rules.entry(ListName::Block, &head), block, "{request:?}");
    }
}

#[test]
fn entry_of_client_needs_its_key_or_network() {
    let rules = rules();
    let of = |key: &tower_quota::Key<'_>| rules.entry_of_client(ListName::Block, key);
    let api_key = key::header("x-api-key");
    assert_eq!(of(&api_key.key_of("bad_1")), Some(0));
    assert_eq!(of(&api_key.key_of("free_1")), None);
    // The patterns compare the key of `defaults` only.
    assert_eq!(of(&key::header("x-tenant").key_of("bad_1")), None);
    let address = |text| key::client_ip().parse(text).unwrap();
    assert_eq!(of(&address("198.51.100.7")), Some(1));
    assert_eq!(of(&address("192.0.2.1")), None);
}
