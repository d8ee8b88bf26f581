//! Requests that are unusual, and what responses have besides statuses.

use prost::Message;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::Code;
use tower_quota_server::envoy::{EnvoyConfig, EnvoyOptions};
use tower_quota_server::messages::ratelimit::RateLimitRequest;

use crate::support::{World, limits, parsed, request, shown};

fn service() -> World {
    World::new("service", limits("service"))
}

#[test]
fn request_without_domain_or_descriptors_is_an_error() {
    let world = service();
    for (domain, descriptors) in [("", &["ten=x"][..]), ("service", &[])] {
        let status = world.send(&request(domain, descriptors)).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
}

#[test]
fn unknown_domain_limits_nothing() {
    let world = service();
    let request = request("other", &["ten=x", "ten=x limit:1/DAY", ""]);
    assert_eq!(
        shown(&world.send(&request).unwrap()),
        ["OK", "OK", "OK", "OK"]
    );
}

#[test]
fn call_has_at_most_32_limits() {
    let world = service();
    let keys: Vec<String> = (0..33).map(|number| format!("ten={number}")).collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let status = world.send(&request("service", &keys)).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("more than 32 limits"), "{status}");
    keys.truncate(32);
    // Descriptors without a limit, and of the same counter, need no charge.
    keys.extend(["nope=x", "ten=0", "open=x"]);
    let response = world.send(&request("service", &keys)).unwrap();
    assert_eq!(response.statuses.len(), 35);
    assert_eq!(response.statuses[0].limit_remaining, 8);
}

#[test]
fn call_has_at_most_1024_descriptors() {
    let world = service();
    let response = world.send(&request("service", &["nope=x"; 1_024])).unwrap();
    assert_eq!(response.statuses.len(), 1_024);
    for domain in ["service", "other"] {
        let status = world.send(&request(domain, &["nope=x"; 1_025]));
        let status = status.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("more than 1024"), "{status}");
    }
}

#[test]
fn limit_of_a_descriptor_needs_a_unit() {
    let world = service();
    let mut request = request("service", &["ten=x limit:5/DAY"]);
    for unit in [0, 7, -1, i32::MAX] {
        request.descriptors[0].limit.as_mut().unwrap().unit = unit;
        let status = world.send(&request).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{unit}");
    }
    let limit = request.descriptors[0].limit.as_mut().unwrap();
    (limit.unit, limit.requests_per_unit) = (1, u32::MAX);
    let status = world.send(&request).unwrap_err();
    assert!(
        status.message().contains("more than 10 million per second"),
        "{status}"
    );
}

#[test]
fn hits_of_a_request_count_for_descriptors_without_hits() {
    let world = service();
    let mut request = request("service", &["ten=x", "ten=y hits:0", "ten=z hits:3"]);
    request.hits_addend = 4;
    assert_eq!(
        shown(&world.send(&request).unwrap())[1..],
        ["OK 6 60s", "OK 10 60s", "OK 7 60s"]
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let mut bytes = request("service", &["ten=x"]).encode_to_vec();
    // Field 15 of a request, and field 9 of a descriptor without entries.
    bytes.extend([0x7a, 3, b'n', b'e', b'w', 0x12, 2, 0x48, 1]);
    let request = RateLimitRequest::decode(bytes.as_slice()).unwrap();
    assert_eq!(
        shown(&service().send(&request).unwrap()),
        ["OK", "OK 9 60s", "OK"]
    );
}

#[test]
fn current_limit_has_name_and_unit() {
    let response = service().ask(&["odd=x", "broad=x"]);
    let limits = response
        .statuses
        .iter()
        .map(|status| status.current_limit.clone().unwrap());
    let shown: Vec<_> = limits
        .map(|limit| (limit.name, limit.requests_per_unit, limit.unit))
        .collect();
    assert_eq!(shown, [("odd".into(), 2, 0), ("broad".into(), 1, 2)]);
}

#[test]
fn headers_show_the_tightest_limit() {
    let mut options = EnvoyOptions::default();
    options.headers = true;
    options.reset_header = "X-Reset".into();
    let world = World::with_options("service", limits("service"), options);
    for (ask, expected) in [
        (
            &["ten=x", "two=x", "open=x"][..],
            "RateLimit-Limit: 2, RateLimit-Remaining: 1, X-Reset: 60",
        ),
        (
            &["ten=x hits:3", "two=x"],
            "RateLimit-Limit: 2, RateLimit-Remaining: 0, X-Reset: 60",
        ),
        (
            &["two=y", "ten=x hits:9"],
            "RateLimit-Limit: 10, RateLimit-Remaining: 6, X-Reset: 60",
        ),
        (&["nope=x", "open=x"], ""),
    ] {
        let headers = world.ask(ask).response_headers_to_add;
        let shown: Vec<String> = headers
            .iter()
            .map(|header| format!("{}: {}", header.key, header.value))
            .collect();
        assert_eq!(shown.join(", "), expected, "{ask:?}");
    }
    assert!(service().ask(&["ten=x"]).response_headers_to_add.is_empty());
}

#[test]
fn refused_calls_have_a_body() {
    let mut options = EnvoyOptions::default();
    options.refusal_body = "slow down".into();
    let world = World::with_options("service", limits("service"), options);
    assert_eq!(world.ask(&["two=x hits:2"]).raw_body, b"");
    assert_eq!(world.ask(&["two=x"]).raw_body, b"slow down");
    assert_eq!(world.ask(&["shadow=x hits:3"]).raw_body, b"");
    assert_eq!(service().ask(&["two=x hits:3"]).raw_body, b"");
}

#[test]
fn headers_show_the_last_limit_that_refuses() {
    let mut options = EnvoyOptions::default();
    options.headers = true;
    let world = World::with_options("service", limits("service"), options);
    world.ask(&["two=x hits:2", "ten=x hits:10", "quota=x hits:2"]);
    for (ask, limit, remaining) in [
        (&["two=x", "ten=x"][..], "10", "0"),
        (&["ten=x", "two=x"], "2", "0"),
        // The first of the limits with the fewest remaining requests.
        (&["two=x hits:0", "ten=x hits:0", "two=y"], "2", "0"),
        (&["ten=y", "two=y hits:0"], "2", "1"),
        // An exceeded quota refuses nothing next to another quota.
        (&["ten=x hits:0", "quota=x", "spare=x"], "10", "0"),
        (&["shadow=x hits:3", "two=y hits:0"], "2", "1"),
    ] {
        let headers = world.ask(ask).response_headers_to_add;
        let values: Vec<&str> = headers.iter().map(|header| header.value.as_str()).collect();
        assert_eq!(values[..2], [limit, remaining], "{ask:?}");
    }
}

/// Shows metadata like JSON without quotes.
fn json(value: &Value) -> String {
    match value.kind.as_ref().unwrap() {
        Kind::NullValue(_) => "null".into(),
        Kind::NumberValue(number) => number.to_string(),
        Kind::StringValue(text) => text.clone(),
        Kind::BoolValue(flag) => flag.to_string(),
        Kind::StructValue(fields) => object(fields),
        Kind::ListValue(list) => {
            let values: Vec<String> = list.values.iter().map(json).collect();
            format!("[{}]", values.join(" "))
        }
    }
}

fn object(fields: &Struct) -> String {
    let fields: Vec<String> = fields
        .fields
        .iter()
        .map(|(name, value)| format!("{name}:{}", json(value)))
        .collect();
    format!("{{{}}}", fields.join(" "))
}

#[test]
fn dynamic_metadata_has_limits_that_are_not_exceeded() {
    let text = "
domain: d
descriptors:
  - key: a
    metadata: { owner: web, plan: { name: free, seats: 2.5, on: true, tags: [x, null, '1'] } }
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: b
    metadata: { owner: api, plan: { name: paid, extra: 7 } }
    rate_limit: { unit: minute, requests_per_unit: 9 }
  - key: c
    metadata: { owner: nobody }
  - key: open
    metadata: { more: x }
    rate_limit: { unlimited: true }
";
    let mut options = EnvoyOptions::default();
    options.dynamic_metadata = true;
    let world = World::with_options("d", parsed(text), options);
    let mut call = request("d", &["a=1", "b=1 c=2 hits:0", "b=1", "open=1"]);
    let answer =
        |call: &RateLimitRequest| object(&world.send(call).unwrap().dynamic_metadata.unwrap());
    assert_eq!(
        answer(&call),
        "{descriptors:[{entries:[a=1]} {entries:[b=1 c=2] hitsAddend:0} {entries:[b=1]} {entries:[open=1]}] domain:d \
         metadata:{owner:web plan:{extra:7 name:free on:true seats:2.5 tags:[x null 1]}}}"
    );
    call.descriptors.truncate(1);
    call.hits_addend = 2;
    assert_eq!(
        answer(&call),
        "{descriptors:[{entries:[a=1]}] domain:d hitsAddend:2}"
    );
    let call = request("d", &["x=1 limit:5/HOUR"]);
    assert_eq!(
        answer(&call),
        "{descriptors:[{entries:[x=1] limit:requests_per_unit:5 unit:HOUR}] domain:d}"
    );
    assert_eq!(service().ask(&["ten=x"]).dynamic_metadata, None);
}

#[test]
fn replaced_limits_keep_counters() {
    let world = service();
    world.ask(&["two=x hits:2"]);
    let text = "domain: service\ndescriptors: [{key: two, rate_limit: {unit: minute, requests_per_unit: 5}}]\n";
    world.door.replace(parsed(text));
    assert_eq!(world.shown(&["two=x", "ten=x"]), ["OK", "OK 2 60s", "OK"]);
}

#[test]
fn aliases_expand_within_bounds() {
    let shared = "
domain: d
descriptors:
  - key: a
    rate_limit: &limit { unit: minute, requests_per_unit: 3 }
  - key: b
    rate_limit: *limit
";
    let world = World::new("d", parsed(shared));
    assert_eq!(world.shown(&["b=x"]), ["OK", "OK 2 60s"]);

    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", "));
    }
    let problems = EnvoyConfig::parse([("bomb.yaml", bomb.as_str())], false).unwrap_err();
    assert!(
        problems.to_string().contains("more than a million values"),
        "{problems}"
    );
    let itself = "a: &a [*a]\n";
    let problems = EnvoyConfig::parse([("itself.yaml", itself)], false).unwrap_err();
    let problems = problems.to_string();
    assert!(
        problems.starts_with("itself.yaml:1:8: the alias is inside of its own anchor"),
        "{problems}"
    );
    let nested = format!("{}x{}\n", "&a [".repeat(64), "]".repeat(64));
    let problems = EnvoyConfig::parse([("nested.yaml", nested.as_str())], false).unwrap_err();
    assert!(
        problems.to_string().contains("more than a million values"),
        "{problems}"
    );
    let deep = "[".repeat(100);
    let problems = EnvoyConfig::parse([("deep.yaml", deep.as_str())], false).unwrap_err();
    assert!(
        problems
            .to_string()
            .contains("nested deeper than 64 levels"),
        "{problems}"
    );
}

#[test]
fn large_configurations_are_read() {
    let mut text = String::from("domain: d\ndescriptors:\n");
    for number in 0..10_000 {
        text += &format!(
            "  - {{key: k, value: v{number}, rate_limit: {{unit: day, requests_per_unit: {}}}}}\n",
            number + 1
        );
    }
    text += &format!(
        "  - {{key: {}, rate_limit: {{unlimited: true}}}}\n",
        "k".repeat(1 << 20)
    );
    let config = parsed(&text);
    assert_eq!(config.limits(), 10_001);
    let twice = text.clone() + &text.replace("domain: d\ndescriptors:\n", "");
    let problems = EnvoyConfig::parse([("twice.yaml", twice.as_str())], false).unwrap_err();
    let lines = problems.to_string();
    assert_eq!((lines.lines().count(), lines.len() < 20_000), (100, true));
    let world = World::new("d", config);
    assert_eq!(world.ask(&["k=v41"]).statuses[0].limit_remaining, 41);
    // A long value is hashed like every other.
    assert_eq!(
        world.shown(&[&format!("k={}", "v".repeat(1 << 20))]),
        ["OK", "OK"]
    );
}
