//! Scopes of keys, and keys made by hand.

use std::collections::HashSet;
use std::net::IpAddr;

use http::Request;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};
use tower_quota::{Key, Name, RequestHead};

use crate::with;

/// Asserts that scopes differ and never change, because counters are stored under them.
#[test]
fn scopes_are_distinct_and_stable() {
    let behind = |source| key::client_ip().behind(Proxies::hops(1), source);
    let scopes = [
        (key::client_ip().scope(), "ip"),
        (key::client_ip().prefix_v6(64).prefix_v4(32).scope(), "ip"),
        (key::client_ip().prefix_v6(56).scope(), "ip /56"),
        (key::client_ip().prefix_v4(24).scope(), "ip v4/24"),
        (
            key::client_ip().prefix_v4(24).prefix_v6(48).scope(),
            "ip /48 v4/24",
        ),
        (
            behind(Source::XForwardedFor).scope(),
            "ip of x-forwarded-for",
        ),
        (
            behind(Source::Forwarded).prefix_v6(48).scope(),
            "ip of forwarded /48",
        ),
        (
            key::client_ip()
                .prefix_v6(48)
                .behind(Proxies::hops(2), Source::XRealIp)
                .scope(),
            "ip of x-real-ip /48",
        ),
        (key::header("user").scope(), "header user"),
        (key::metadata("User").scope(), "metadata user"),
        (key::cookie("user").scope(), "cookie user"),
        (key::query("user").scope(), "query user"),
        (
            key::extension("user", |_: &String| Some("")).scope(),
            "extension user",
        ),
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

/// Asserts that the extracted key, the key made by hand and the parsed key are equal.
fn assert_same(
    by: &impl KeyExtractor,
    request: &Request<()>,
    by_hand: &Key<'_>,
    text: Option<&str>,
) {
    assert_eq!(
        by.extract(&RequestHead::of(request)).as_ref(),
        Some(by_hand)
    );
    assert_eq!(
        text.and_then(|text| by.parse(text)).as_ref(),
        text.map(|_| by_hand)
    );
}

#[test]
fn key_made_by_hand_equals_the_extracted() {
    let mut request = with(&[
        ("x-api-key", "ann"),
        ("authorization", "Bearer abc"),
        ("cookie", "session=%61bc"),
        ("host", "Example.com:80"),
    ]);
    *request.uri_mut() = "/shop.Cart/Add?key=a+b".parse().unwrap();
    request.extensions_mut().insert(7_u64);
    request
        .extensions_mut()
        .insert("192.0.2.1".parse::<IpAddr>().unwrap());
    let ann = key::header("x-api-key");
    assert_same(&ann, &request, &ann.key_of("ann"), Some("ann"));
    assert_same(
        &key::metadata("x-api-key"),
        &request,
        &key::metadata("x-api-key").key_of("ann"),
        Some("ann"),
    );
    assert_same(
        &key::bearer(),
        &request,
        &key::bearer().key_of("abc"),
        Some("abc"),
    );
    assert_same(
        &key::cookie("session"),
        &request,
        &key::cookie("session").key_of("abc"),
        Some("abc"),
    );
    assert_same(
        &key::query("key"),
        &request,
        &key::query("key").key_of("a b"),
        Some("a b"),
    );
    assert_same(
        &key::path(),
        &request,
        &key::path().key_of("/shop.Cart/Add"),
        Some("/shop.Cart/Add"),
    );
    assert_same(
        &key::path_segment(1),
        &request,
        &key::path_segment(1).key_of("Add"),
        Some("Add"),
    );
    assert_same(
        &key::host(),
        &request,
        &key::host().key_of("EXAMPLE.com"),
        Some("example.com."),
    );
    assert_same(
        &key::method(),
        &request,
        &key::method().key_of("GET"),
        Some("GET"),
    );
    assert_same(
        &key::grpc_service(),
        &request,
        &key::grpc_service().key_of("shop.Cart"),
        Some("shop.Cart"),
    );
    assert_same(
        &key::grpc_method(),
        &request,
        &key::grpc_method().key_of("shop.Cart/Add"),
        Some("shop.Cart/Add"),
    );
    let id = key::extension("id", |id: &u64| Some(id.to_string()));
    assert_same(&id, &request, &id.key_of("7"), Some("7"));
    let id = key::from_fn("id", |head| {
        Some(head.extensions().get::<u64>()?.to_be_bytes())
    });
    assert_same(&id, &request, &id.key_of(7_u64.to_be_bytes()), None);
    assert_same(&key::everyone(), &request, &Key::EVERYONE, Some(""));
    let both = key::all((ann.clone(), key::method()));
    assert_same(
        &both,
        &request,
        &both.key_of([&ann.key_of("ann"), &key::method().key_of("GET")]),
        None,
    );
    let client = key::client_ip().prefix_v4(24);
    let by_hand = client.key_of("192.0.2.200".parse().unwrap());
    assert_same(&client, &request, &by_hand, Some("192.0.2.9"));
    assert_same(&client, &request, &by_hand, Some("192.0.2.0/24"));
    assert_same(&client, &request, &by_hand, Some("::ffff:192.0.2.0/120"));
    let basic = with(&[("authorization", "Basic QWxhZGRpbjp4")]);
    assert_same(
        &key::basic_user(),
        &basic,
        &key::basic_user().key_of("Aladdin"),
        Some("Aladdin"),
    );
}

#[test]
fn text_that_is_no_key_is_refused() {
    for text in ["", "ann", "192.0.2.0/25", "192.0.2.0/33", "2001:db8::/65"] {
        assert_eq!(key::client_ip().parse(text), None, "{text}");
    }
    assert_eq!(key::header("k").parse(""), None);
    assert_eq!(
        key::all((key::header("k"), key::client_ip())).parse("192.0.2.1"),
        None
    );
}

#[test]
fn alternatives_read_addresses_first() {
    let (header, address) = (key::header("k"), key::client_ip());
    let of_address = Some(address.key_of("192.0.2.1".parse().unwrap()));
    let of_header = Some(header.key_of("ann"));
    for alternatives in [
        header.clone().or(address.clone()),
        address.clone().or(header.clone()),
        header.clone().or(address.clone()).or(key::everyone()),
        header.clone().or(key::cookie("k")).or(address),
    ] {
        assert_eq!(
            alternatives.parse("192.0.2.1"),
            of_address,
            "{alternatives:?}"
        );
        assert_eq!(alternatives.parse("ann"), of_header, "{alternatives:?}");
    }
}

#[test]
fn address_key_is_leading_bytes() {
    let client = key::client_ip;
    let bytes = |client: key::ClientIp, address: &str| {
        client.key_of(address.parse().unwrap()).as_bytes().to_vec()
    };
    assert_eq!(client().scope().as_str(), "ip");
    assert_eq!(bytes(client(), "203.0.113.7"), [203, 0, 113, 7]);
    assert_eq!(bytes(client(), "::ffff:203.0.113.7"), [203, 0, 113, 7]);
    assert_eq!(
        bytes(client().prefix_v4(20), "255.255.255.255"),
        [255, 255, 240, 0]
    );
    assert_eq!(
        bytes(client(), "2001:db8:0:1:2:3:4:5"),
        [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1]
    );
    assert_eq!(
        bytes(client().prefix_v6(20), "2001:db8::1"),
        [0x20, 1, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(bytes(client().prefix_v6(128), "::1").len(), 16);
    for address in [
        "203.0.113.7",
        "64:ff9b::203.0.113.7",
        "2001:db8:0:1:2:3:4:5",
    ] {
        let address = address.parse().unwrap();
        assert_eq!(
            client().key_of(address),
            Key::address(client().scope(), address)
        );
    }
}
