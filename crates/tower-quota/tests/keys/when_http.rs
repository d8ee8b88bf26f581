//! Conditions on method, path, host, gRPC service and method, and on other conditions.

use http::{Method, Request};
use tower_quota::RequestHead;
use tower_quota::when::{self, Condition, PatternError};

use crate::holds;

/// Asserts for each target whether the condition matches a request to it.
fn assert_of_targets(condition: &dyn Condition, targets: &[(&str, bool)]) {
    for (target, expected) in targets {
        assert_eq!(
            holds(condition, Request::get(*target)),
            *expected,
            "{target}"
        );
    }
}

#[test]
fn method_condition_compares_exactly() {
    let writes = when::method([Method::POST, Method::DELETE]);
    for (method, expected) in [
        ("POST", true),
        ("DELETE", true),
        ("GET", false),
        ("HEAD", false),
        ("POSTS", false),
    ] {
        assert_eq!(
            holds(&writes, Request::builder().method(method)),
            expected,
            "{method}"
        );
    }
}

#[test]
fn get_condition_includes_head() {
    let reads = when::method([Method::GET]);
    assert!(holds(&reads, Request::get("/")));
    assert!(holds(&reads, Request::head("/")));
    assert!(!holds(&reads, Request::post("/")));
    let head = when::method([Method::HEAD]);
    assert!(!holds(&head, Request::get("/")));
}

#[test]
fn path_matches_as_axum_routes_do() {
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
        &[
            ("/api/a", true),
            ("/api/a/b?c", true),
            ("/api/", false),
            ("/api", false),
            ("/apis/a", false),
        ],
    );
    assert_of_targets(&when::path("/{{id}}"), &[("/{id}", true), ("/7", false)]);
    let star = Request::builder().method("OPTIONS").uri("*");
    assert!(!holds(&when::path("/{*rest}"), star));
}

#[test]
fn invalid_path_pattern_is_an_error() {
    for pattern in [
        "",
        "users",
        "/{",
        "/{}",
        "/{*rest}/more",
        "/{a}{b}",
        "/:id",
        "/a/*rest",
        "*",
    ] {
        let error = when::try_path(pattern).unwrap_err();
        assert!(
            matches!(&error, PatternError::Path { pattern: named, .. } if named == pattern),
            "{pattern}: {error}"
        );
    }
    assert_eq!(
        when::try_path("/users/:id").unwrap_err().to_string(),
        "\"/users/:id\" is not a pattern of paths: write \"{name}\" for a segment and \"{*name}\" for the rest"
    );
}

/// Returns whether a condition matches a request with this `Host`.
fn of_host(condition: &dyn Condition, host: &str) -> bool {
    holds(condition, Request::get("/").header("host", host))
}

#[test]
fn host_matches_in_any_spelling() {
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
fn conflicting_hosts_match_as_asked_in_doubt() {
    let ask = |condition: &dyn Condition, target: &str, headers: &[&str]| {
        let request = headers.iter().fold(Request::get(target), |request, host| {
            request.header("host", *host)
        });
        let request = request.body(()).unwrap();
        let head = RequestHead::of(&request);
        (
            condition(&head.in_doubt(true)),
            condition(&head.in_doubt(false)),
        )
    };
    let condition = when::host("a.test");
    for (target, headers, expected) in [
        (
            "https://a.test:1/x",
            &["b.test", "b.test"] as &[&str],
            (true, false),
        ),
        ("https://b.test/x", &["a.test"], (true, false)),
        ("/x", &["a.test", "b.test"], (true, false)),
        ("/x", &["b.test", "a.test"], (true, false)),
        ("https://b.test/x", &["b.test", "a.test"], (true, false)),
        (
            "https://a.test/x",
            &["A.test:8443", "a.test."],
            (true, true),
        ),
        ("https://b.test/x", &["b.test"], (false, false)),
        ("/x", &["a.test", ""], (true, false)),
    ] {
        assert_eq!(
            ask(&condition, target, headers),
            expected,
            "{target} {headers:?}"
        );
    }
    let under = when::host("*.a.test");
    assert_eq!(ask(&under, "/x", &["b.a.test", "c.a.test"]), (true, true));
    assert_eq!(ask(&under, "/x", &["b.a.test", "a.test"]), (true, false));
    let not = when::not(when::host("a.test"));
    assert_eq!(ask(&not, "/x", &["a.test", "b.test"]), (true, false));
}

#[test]
fn invalid_host_is_an_error() {
    for pattern in [
        "",
        "*",
        "*.",
        "a.*.com",
        "a.test:80",
        "https://a.test",
        "a b",
        "*.[::1]",
        "[x]",
        ".a",
        "*..a",
        "::1",
    ] {
        assert_eq!(
            when::try_host(pattern).unwrap_err(),
            PatternError::Host(pattern.into())
        );
    }
}

#[test]
fn preflight_needs_method_and_both_headers() {
    let ask = |method: &str, headers: &[&str]| {
        let request = Request::builder().method(method);
        let request = headers
            .iter()
            .fold(request, |request, name| request.header(*name, "x"));
        holds(&when::cors_preflight(), request)
    };
    assert!(ask("OPTIONS", &["origin", "access-control-request-method"]));
    assert!(!ask("GET", &["origin", "access-control-request-method"]));
    assert!(!ask("OPTIONS", &["origin"]));
    assert!(!ask("OPTIONS", &["access-control-request-method"]));
}

#[test]
fn grpc_conditions_compare_the_path_alone() {
    let (service, method) = (when::grpc_service("a.B"), when::grpc_method("a.B/C"));
    for (target, of_service, of_method) in [
        ("/a.B/C", true, true),
        ("/a.B/D", true, false),
        ("/a.B/C/d", true, false),
        ("/a.B/", true, false),
        ("/a.B", false, false),
        ("/a.Bc/C", false, false),
        ("/x/a.B/C", false, false),
        ("/", false, false),
    ] {
        for content_type in ["application/grpc", "text/plain"] {
            let call = || Request::post(target).header("content-type", content_type);
            assert_eq!(holds(&service, call()), of_service, "{target}");
            assert_eq!(holds(&method, call()), of_method, "{target}");
        }
    }
}

#[test]
fn invalid_grpc_name_is_an_error() {
    for name in ["", "/a.B", "a.B/", "a.B/C"] {
        assert_eq!(
            when::try_grpc_service(name).unwrap_err(),
            PatternError::GrpcService(name.into())
        );
    }
    for name in ["", "a.B", "a.B/", "/C", "/a.B/C", "a.B/C/D"] {
        assert_eq!(
            when::try_grpc_method(name).unwrap_err(),
            PatternError::GrpcMethod(name.into())
        );
    }
}

#[test]
fn conditions_combine() {
    let targets = [("/a", true), ("/b", true), ("/c", false)];
    assert_of_targets(&when::any([when::path("/a"), when::path("/b")]), &targets);
    assert_of_targets(
        &when::not(when::any([when::path("/c"), when::path("/d")])),
        &targets,
    );
    let mixed: [Box<dyn Condition>; 2] = [
        when::method([Method::GET]),
        Box::new(|head: &RequestHead<'_>| head.uri().path() != "/c"),
    ];
    assert_of_targets(&when::every(mixed), &targets);
    let none = Vec::<Box<dyn Condition>>::new;
    assert_of_targets(&when::any(none()), &[("/", false)]);
    assert_of_targets(&when::every(none()), &[("/", true)]);
}
