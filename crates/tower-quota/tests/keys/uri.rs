//! Paths, queries, hosts and methods.

use http::Method;
use tower_quota::key;

use crate::{SHARED, one, read, to};

#[test]
fn path_and_its_segments_are_decoded() {
    let cases = [
        (
            "/tenants/acme/users?x=y",
            one("/tenants/acme/users"),
            one("acme"),
        ),
        ("/tenants/%61cme", one("/tenants/acme"), one("acme")),
        ("/tenants/a%2Fb", one("/tenants/a/b"), one("a/b")),
        ("/tenants/", one("/tenants/"), None),
        ("/tenants//acme", one("/tenants//acme"), None),
        ("/tenants", one("/tenants"), None),
        ("/", one("/"), None),
        ("*", one("*"), None),
        ("example.com:443", None, None),
    ];
    for (uri, path, segment) in cases {
        assert_eq!(read(&key::path(), &to(uri)), path, "{uri}");
        assert_eq!(read(&key::path_segment(1), &to(uri)), segment, "{uri}");
    }
}

#[test]
fn query_parameter_is_read_as_a_form() {
    let cases = [
        ("/?key=abc", one("abc")),
        ("/?a=b&key=abc&c=d", one("abc")),
        ("/?%6Bey=%61bc", one("abc")),
        ("/?key=a+b", one("a b")),
        ("/?key=a%20b", one("a b")),
        ("/?key=abc&key=abc", one("abc")),
        ("/?key=abc&key=abd", SHARED),
        ("/?key=abc&%6bey=abd", SHARED),
        ("/?key=&key=abc", SHARED),
        ("/?Key=abc", None),
        ("/?key=", None),
        ("/?key", None),
        ("/?", None),
        ("/", None),
    ];
    for (uri, expected) in cases {
        assert_eq!(read(&key::query("key"), &to(uri)), expected, "{uri}");
    }
}

#[test]
fn host_is_read_in_one_spelling() {
    let cases = [
        ("/", &["example.com"] as &[&str], one("example.com")),
        ("/", &["EXAMPLE.com:8080"], one("example.com")),
        ("/", &["example.com."], one("example.com")),
        ("/", &["example.com.:443"], one("example.com")),
        ("/", &["[2001:DB8::1]:443"], one("[2001:db8::1]")),
        ("/", &["[2001:db8::1]"], one("[2001:db8::1]")),
        ("/", &["a.example", "b.example"], SHARED),
        ("/", &["a.example", "A.example:80"], one("a.example")),
        ("https://Example.com:8443/", &[], one("example.com")),
        ("https://user:secret@example.com/", &[], one("example.com")),
        ("https://example.com/", &["example.com"], one("example.com")),
        ("https://example.com/", &["example.org"], SHARED),
        ("/", &[""], None),
        ("/", &[":80"], None),
        ("/", &[], None),
    ];
    for (uri, hosts, expected) in cases {
        let mut request = to(uri);
        for host in hosts {
            request.headers_mut().append("host", host.parse().unwrap());
        }
        assert_eq!(read(&key::host(), &request), expected, "{uri} {hosts:?}");
    }
}

#[test]
fn unknown_methods_share_one_counter() {
    let by = |method: &str| {
        let mut request = to("/");
        *request.method_mut() = method.parse::<Method>().unwrap();
        read(&key::method(), &request)
    };
    assert_eq!(by("GET"), one("GET"));
    assert_eq!(by("HEAD"), one("HEAD"));
    assert_eq!(by("BREW"), one("other"));
    assert_eq!(by("WHEN"), one("other"));
}
