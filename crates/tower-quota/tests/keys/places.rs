//! Hosts, paths, extensions, and the scopes of all.

use std::collections::HashSet;

use http::Request;
use tower_quota::Name;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};

use crate::{NOBODY, one, read, to};

#[test]
fn hosts() {
    let cases = [
        ("/", &["example.com"] as &[&str], one("example.com")),
        ("/", &["EXAMPLE.com:8080"], one("example.com")),
        ("/", &["example.com."], one("example.com")),
        ("/", &["example.com.:443"], one("example.com")),
        ("/", &["[2001:DB8::1]:443"], one("[2001:db8::1]")),
        ("/", &["[2001:db8::1]"], one("[2001:db8::1]")),
        ("/", &["a.example", "b.example"], NOBODY),
        ("/", &["a.example", "A.example:80"], one("a.example")),
        ("https://Example.com:8443/", &[], one("example.com")),
        ("https://user:secret@example.com/", &[], one("example.com")),
        ("https://example.com/", &["example.com"], one("example.com")),
        ("https://example.com/", &["example.org"], NOBODY),
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
fn paths_and_their_segments() {
    let cases = [
        ("/tenants/acme/users?x=y", one("/tenants/acme/users"), one("acme")),
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
fn extensions() {
    #[derive(Clone)]
    struct User(&'static str);

    let by_user = key::extension("user", |user: &User| user.0);
    let mut request = Request::new(());
    assert_eq!(read(&by_user, &request), None);
    request.extensions_mut().insert(User("ann"));
    assert_eq!(read(&by_user, &request), one("ann"));
    assert_eq!(read(&by_user.clone(), &request), one("ann"));
    request.extensions_mut().insert(User(""));
    assert_eq!(read(&by_user, &request), None);
}

/// Counters are filed under scopes: they must differ from each other, and never change.
#[test]
fn scopes_are_distinct_and_stable() {
    let behind = |source| key::client_ip().behind(Proxies::hops(1), source);
    let scopes = [
        (key::client_ip().scope(), "client ip"),
        (key::client_ip().prefix_v6(64).prefix_v4(32).scope(), "client ip"),
        (key::client_ip().prefix_v6(56).scope(), "client ip /56"),
        (key::client_ip().prefix_v4(24).scope(), "client ip v4/24"),
        (key::client_ip().prefix_v4(24).prefix_v6(48).scope(), "client ip /48 v4/24"),
        (behind(Source::XForwardedFor).scope(), "client ip of x-forwarded-for"),
        (behind(Source::Forwarded).prefix_v6(48).scope(), "client ip of forwarded /48"),
        (
            key::client_ip().prefix_v6(48).behind(Proxies::hops(2), Source::XRealIp).scope(),
            "client ip of x-real-ip /48",
        ),
        (key::header("user").scope(), "header user"),
        (key::metadata("User").scope(), "metadata user"),
        (key::cookie("user").scope(), "cookie user"),
        (key::query("user").scope(), "query user"),
        (key::extension("user", |_: &String| "").scope(), "extension user"),
        (key::from_fn("user", |_| Some("")).scope(), "fn user"),
        (key::bearer().scope(), "bearer token"),
        (key::basic_user().scope(), "basic user"),
        (key::host().scope(), "host"),
        (key::path().scope(), "path"),
        (key::path_segment(1).scope(), "path segment 1"),
        (key::grpc_service().scope(), "grpc service"),
        (key::grpc_method().scope(), "grpc method"),
        (key::method().scope(), "method"),
    ];
    for (scope, text) in scopes {
        assert_eq!(scope, Name::new(text));
    }
    let ids: HashSet<u32> = scopes.iter().map(|(scope, _)| scope.id()).collect();
    assert_eq!(ids.len(), scopes.len() - 1, "the first two are one");
}
