//! Which requests each condition holds of.

use std::net::{IpAddr, Ipv4Addr};

use http::{Method, Request, Version};
use tower_quota::when::{Condition, PatternError};
use tower_quota::{Limit, Policy, Quota, RequestHead, key, when};

use crate::fixture::{Limited, field};

fn holds(condition: &dyn Condition, request: http::request::Builder) -> bool {
    condition(&RequestHead::of(&request.body(()).unwrap()))
}

/// A request to each of these targets, and whether the condition holds of it.
fn assert_of_targets(condition: &dyn Condition, targets: &[(&str, bool)]) {
    for (target, expected) in targets {
        assert_eq!(holds(condition, Request::get(*target)), *expected, "{target}");
    }
}

#[test]
fn methods() {
    let writes = when::method([Method::POST, Method::DELETE]);
    for (method, expected) in [("POST", true), ("DELETE", true), ("GET", false), ("HEAD", false), ("POSTS", false)] {
        assert_eq!(holds(&writes, Request::builder().method(method)), expected, "{method}");
    }
}

#[test]
fn paths_match_as_axum_routes_do() {
    assert_of_targets(
        &when::path("/login"),
        &[
            ("/login", true),
            ("/login?next=/", true),
            ("https://example.com/login", true),
            ("/login/", false),
            ("/Login", false),
            ("/%6Cogin", false),
            ("//login", false),
            ("/", false),
        ],
    );
    assert_of_targets(
        &when::path("/users/{id}/posts"),
        &[
            ("/users/7/posts", true),
            ("/users/%2F/posts", true),
            ("/users//posts", true),
            ("/users/7", false),
            ("/users/7/8/posts", false),
        ],
    );
    assert_of_targets(
        &when::path("/api/{*rest}"),
        &[("/api/a", true), ("/api/a/b?c", true), ("/api/", false), ("/api", false), ("/apis/a", false)],
    );
    assert_of_targets(&when::path("/{{id}}"), &[("/{id}", true), ("/7", false)]);
    let star = Request::builder().method("OPTIONS").uri("*");
    assert!(!holds(&when::path("/{*rest}"), star));
}

#[test]
fn patterns_of_paths_that_mean_nothing_are_told() {
    for pattern in ["", "users", "/{", "/{}", "/{*rest}/more", "/{a}{b}", "/:id", "/a/*rest", "*"] {
        let error = when::try_path(pattern).unwrap_err();
        assert!(matches!(&error, PatternError::Path { pattern: told, .. } if told == pattern), "{pattern}: {error}");
    }
    assert_eq!(
        when::try_path("/users/:id").unwrap_err().to_string(),
        "\"/users/:id\" is not a pattern of paths: write \"{name}\" for a segment and \"{*name}\" for the rest"
    );
}

/// Whether a condition holds of a request with this `Host`.
fn of_host(condition: &dyn Condition, host: &str) -> bool {
    holds(condition, Request::get("/").header("host", host))
}

#[test]
fn hosts() {
    let one = when::host("API.example.com");
    for (host, expected) in [
        ("api.example.com", true),
        ("Api.Example.COM:8443", true),
        ("api.example.com.", true),
        ("api.example.com.:80", true),
        ("example.com", false),
        ("xapi.example.com", false),
        ("api.example.com.evil.test", false),
        ("", false),
    ] {
        assert_eq!(of_host(&one, host), expected, "{host}");
    }
    let under = when::host("*.example.com");
    for (host, expected) in [
        ("a.example.com", true),
        ("a.b.EXAMPLE.com:1", true),
        ("example.com", false),
        (".example.com", false),
        ("badexample.com", false),
    ] {
        assert_eq!(of_host(&under, host), expected, "{host}");
    }
    assert!(of_host(&when::host("127.0.0.1"), "127.0.0.1:3000"));
    assert!(of_host(&when::host("[::1]"), "[::1]:3000"));
    assert!(of_host(&when::host("[::1]"), "[::1]"));
    assert!(!of_host(&when::host("[::1]"), "[::2]:3000"));
    assert!(!holds(&one, Request::get("/")), "no host");
}

#[test]
fn the_target_says_the_host_before_the_header_does() {
    let condition = when::host("a.test");
    let ask = |target: &str, headers: [&str; 2]| {
        holds(&condition, headers.iter().fold(Request::get(target), |request, host| request.header("host", *host)))
    };
    assert!(ask("https://a.test:1/x", ["b.test", "b.test"]));
    assert!(!ask("https://b.test/x", ["a.test", "a.test"]));
    assert!(ask("/x", ["a.test", "b.test"]), "the first, which applications read");
    assert!(!ask("/x", ["b.test", "a.test"]));
}

#[test]
fn hosts_that_are_none_are_told() {
    for pattern in
        ["", "*", "*.", "a.*.com", "a.test:80", "https://a.test", "a b", "*.[::1]", "[x]", ".a", "*..a", "::1"]
    {
        assert_eq!(when::try_host(pattern).unwrap_err(), PatternError::Host(pattern.into()));
    }
}

fn from(address: &str) -> http::request::Builder {
    Request::get("/").extension(address.parse::<IpAddr>().unwrap())
}

#[test]
fn addresses_in_networks() {
    let listed = when::address_in(
        key::client_ip(),
        [
            "203.0.113.0/24",
            "203.0.113.7",
            "10.1.2.3/8",
            "192.0.2.44",
            "198.51.100.0/25",
            "198.51.100.128/25",
            "2001:db8::/32",
            "::ffff:172.16.0.0/108",
        ],
    );
    for (address, expected) in [
        ("203.0.113.0", true),
        ("203.0.113.8", true),
        ("203.0.113.255", true),
        ("203.0.112.255", false),
        ("203.0.114.0", false),
        ("10.255.255.255", true),
        ("11.0.0.0", false),
        ("192.0.2.44", true),
        ("192.0.2.45", false),
        ("198.51.100.127", true),
        ("198.51.100.128", true),
        ("::ffff:203.0.113.9", true),
        ("172.31.255.255", true),
        ("172.32.0.0", false),
        ("2001:db8:ffff::1", true),
        ("2001:db9::", false),
        ("::1", false),
    ] {
        assert_eq!(holds(&listed, from(address)), expected, "{address}");
    }
    assert!(!holds(&listed, Request::get("/")), "no address");
}

#[test]
fn all_of_a_family_is_no_address_of_the_other() {
    let (v4, v6) = (when::address_in(key::client_ip(), ["0.0.0.0/0"]), when::address_in(key::client_ip(), ["::/0"]));
    for (address, expected) in [("192.0.2.1", true), ("::ffff:192.0.2.1", true), ("2001:db8::1", false)] {
        assert_eq!(holds(&v4, from(address)), expected, "{address}");
        assert_eq!(holds(&v6, from(address)), !expected, "{address}");
    }
    let nobody = when::address_in(key::client_ip(), [""; 0]);
    assert!(!holds(&nobody, from("192.0.2.1")));
}

#[test]
fn long_lists_find_what_a_short_one_would() {
    // Every other /24 of 10.0.0.0/9, with duplicates and networks inside others, in no order.
    let nets = (0..32_768_u32).map(|i| i * 7_919 % 32_768).filter(|i| i % 2 == 0);
    let texts: Vec<String> = nets
        .flat_map(|i| {
            let [_, _, b, c] = i.to_be_bytes();
            [format!("10.{b}.{c}.64/26"), format!("10.{b}.{c}.0/24"), format!("10.{b}.{c}.9")]
        })
        .collect();
    let listed = when::address_in(key::client_ip(), &texts);
    for i in 0..40_000_u32 {
        let [_, a, b, c] = (i * 104_729 % (40_000 * 256)).to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(10, a, b, c));
        let expected = a < 128 && b % 2 == 0;
        assert_eq!(holds(&listed, Request::get("/").extension(address)), expected, "{address}");
    }
}

#[test]
fn networks_that_are_none_are_told() {
    for text in ["", "203.0.113.0/33", "203.0.113/24", "10.0.0.1/", "2001:db8::/129", "example.com", " 10.0.0.1"] {
        let listed = when::try_address_in(key::client_ip(), ["10.0.0.0/8", text]);
        assert_eq!(listed.unwrap_err(), PatternError::Network(text.into()));
    }
}

#[test]
fn keys_in_a_list() {
    let listed = when::key_in(key::header("x-api-key"), ["ann", "bob", ""]);
    let of = |keys: &[&str]| {
        holds(&listed, keys.iter().fold(Request::get("/"), |request, key| request.header("x-api-key", *key)))
    };
    assert!(of(&["ann"]) && of(&["bob"]) && of(&["bob", "bob"]));
    assert!(!of(&["Ann"]) && !of(&["eve"]) && !of(&["anna"]));
    assert!(!of(&[]), "a missing key");
    assert!(!of(&[""]), "an empty one");
    assert!(!of(&["ann", "eve"]), "a doubtful one");
}

#[test]
fn preflight_requests() {
    let ask = |method: &str, headers: &[&str]| {
        let request = Request::builder().method(method);
        let request = headers.iter().fold(request, |request, name| request.header(*name, "x"));
        holds(&when::cors_preflight(), request)
    };
    assert!(ask("OPTIONS", &["origin", "access-control-request-method"]));
    assert!(!ask("GET", &["origin", "access-control-request-method"]));
    assert!(!ask("OPTIONS", &["origin"]));
    assert!(!ask("OPTIONS", &["access-control-request-method"]));
}

#[test]
fn grpc_calls() {
    let ask = |version, content_type: &str| {
        holds(&when::grpc(), Request::post("/a.B/C").version(version).header("content-type", content_type))
    };
    assert!(ask(Version::HTTP_2, "application/grpc+proto"));
    assert!(ask(Version::HTTP_11, "application/grpc-web"));
    assert!(!ask(Version::HTTP_11, "application/grpc"));
    assert!(!ask(Version::HTTP_2, "application/json"));
}

#[test]
fn conditions_of_conditions() {
    let targets = [("/a", true), ("/b", true), ("/c", false)];
    assert_of_targets(&when::any([when::path("/a"), when::path("/b")]), &targets);
    assert_of_targets(&when::not(when::any([when::path("/c"), when::path("/d")])), &targets);
    let mixed: [Box<dyn Condition>; 2] =
        [when::method([Method::GET]), Box::new(|head: &RequestHead<'_>| head.uri().path() != "/c")];
    assert_of_targets(&when::every(mixed), &targets);
    let none = Vec::<Box<dyn Condition>>::new;
    assert_of_targets(&when::any(none()), &[("/", false)]);
    assert_of_targets(&when::every(none()), &[("/", true)]);
}

/// The names of the limits that count a request.
async fn counting(limited: &Limited, request: http::request::Builder) -> String {
    field(&limited.send(request).await, "ratelimit-policy").unwrap_or_default()
}

#[tokio::test]
async fn a_limit_counts_where_all_its_conditions_hold() {
    let limit = Limit::new("l", Quota::per_minute(9))
        .when(when::method([Method::POST]))
        .when(|head| head.uri().path().starts_with("/api"))
        .unless(when::path("/api/free"))
        .unless(|head| head.headers().contains_key("x-internal"));
    let limited = Limited::new(Policy::new().limit(limit));
    assert_ne!(counting(&limited, Request::post("/api/x")).await, "");
    for request in [
        Request::get("/api/x"),
        Request::post("/other"),
        Request::post("/api/free"),
        Request::post("/api/x").header("x-internal", "1"),
    ] {
        assert_eq!(counting(&limited, request).await, "");
    }
}
