//! Combined keys, and the first key that is not missing.

use std::net::IpAddr;

use http::Request;
use tower_quota::key::{self, KeyExtractor};
use tower_quota::{ConfigError, Key, Limit, MemoryStore, Name, Policy, Quota, RequestHead, Store};

use crate::{read, to, with};

/// Returns the key of a request, with its scope.
fn key_of(by: &impl KeyExtractor, request: &Request<()>) -> Option<Key<'static>> {
    let key = by.extract(&RequestHead::of(request))?;
    Some(Key::owned(key.scope(), key.as_bytes()))
}

fn from(mut request: Request<()>, peer: &str) -> Request<()> {
    request
        .extensions_mut()
        .insert(peer.parse::<IpAddr>().unwrap());
    request
}

#[test]
fn all_needs_every_part() {
    let both = key::all([key::header("a"), key::header("b")]);
    assert_eq!(read(&both, &with(&[("a", "1")])), None);
    assert!(read(&both, &with(&[("a", "1"), ("b", "2")])).is_some());
}

#[test]
fn all_keeps_its_parts_apart() {
    let pair = |one: &'static str, other: &'static str| {
        key::all((
            key::from_fn("one", move |_| Some(one)),
            key::from_fn("other", move |_| Some(other)),
        ))
    };
    assert_ne!(
        read(&pair("ab", "c"), &to("/")),
        read(&pair("a", "bc"), &to("/"))
    );
    assert_eq!(pair("a", "b").scope().as_str(), "(fn one + fn other)");
}

#[test]
fn nested_combinations_have_scopes_of_their_own() {
    let left = key::all((key::all((key::everyone(), key::method())), key::client_ip()));
    let right = key::all((key::everyone(), key::all((key::method(), key::client_ip()))));
    assert_ne!(left.scope(), right.scope());
    let first = key::first_of((key::first_of((key::bearer(), key::host())), key::method()));
    assert_eq!(first.scope().as_str(), "((bearer token or host) or method)");
}

#[test]
fn first_of_takes_first_present_key() {
    let (api_key, address) = (key::header("x-api-key"), key::client_ip());
    let ann = || from(with(&[("x-api-key", "ann")]), "192.0.2.1");
    let anonymous = || from(to("/"), "192.0.2.1");
    for by in [
        key::first_of((key::header("x-api-key"), key::client_ip())),
        key::header("x-api-key").or(key::client_ip()),
        Box::new(key::header("x-api-key")).or(key::client_ip()),
    ] {
        assert_eq!(key_of(&by, &ann()), key_of(&api_key, &ann()));
        assert_eq!(key_of(&by, &anonymous()), key_of(&address, &anonymous()));
        assert_eq!(key_of(&by, &to("/")), None);
        assert_eq!(by.scope().as_str(), "(header x-api-key or ip)");
    }
}

#[test]
fn first_of_stops_at_conflicting_values() {
    let by = key::header("x-api-key").or(key::client_ip());
    let doubled = from(
        with(&[("x-api-key", "ann"), ("x-api-key", "bob")]),
        "192.0.2.1",
    );
    assert_eq!(
        key_of(&by, &doubled),
        Some(Key::new(Name::new("header x-api-key"), b""))
    );
}

#[test]
fn all_and_first_of_nest() {
    let by = key::all((key::header("x-api-key").or(key::client_ip()), key::method()));
    let (ann, anonymous) = (with(&[("x-api-key", "ann")]), from(to("/"), "192.0.2.1"));
    let method = key::method().key_of("GET");
    assert_eq!(
        key_of(&by, &ann),
        Some(by.key_of([&key::header("x-api-key").key_of("ann"), &method]))
    );
    let address = key::client_ip().key_of("192.0.2.1".parse().unwrap());
    assert_eq!(
        key_of(&by, &anonymous),
        Some(by.key_of([&address, &method]))
    );
    assert_eq!(key_of(&by, &to("/")), None);

    let either =
        key::all((key::bearer(), key::host())).or(key::all((key::client_ip(), key::method())));
    assert!(key_of(&either, &anonymous).is_some());
}

#[test]
fn first_of_differs_by_every_part() {
    let by = |header: &'static str| {
        let second = key::from_fn("second", move |head| {
            Some(head.headers().get(header)?.as_bytes().to_vec())
        });
        key::bearer().or(second)
    };
    let limit = |name: &'static str, by| Limit::new(name, Quota::per_minute(1)).by(by);
    let error = Policy::new()
        .limit(limit("a", by("a")))
        .try_limit(limit("b", by("b")))
        .unwrap_err();
    assert_eq!(
        error,
        ConfigError::SharedScope(Name::new("(bearer token or fn second)"))
    );
    let same = || key::bearer().or(key::host());
    assert!(
        Policy::new()
            .limit(limit("a", same()))
            .try_limit(limit("b", same()))
            .is_ok()
    );
}

#[tokio::test]
async fn first_of_shares_counters_with_its_part() {
    use tower::{Layer, ServiceExt, service_fn};

    let store = MemoryStore::new();
    let quota = Quota::per_hour(5);
    let policy = Policy::new()
        .limit(Limit::new("either", quota).by(key::header("x-api-key").or(key::client_ip())))
        .limit(Limit::new("keyed", quota).by(key::header("x-api-key")));
    let inner = service_fn(async |_: Request<()>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
    });
    let service = tower_quota::RateLimitLayer::new(store.clone(), policy).layer(inner);
    service
        .oneshot(with(&[("x-api-key", "ann")]))
        .await
        .unwrap();

    let ann = key::header("x-api-key").key_of("ann");
    for name in ["either", "keyed"] {
        let peek = store
            .check(&[tower_quota::store::Charge::new(name, &quota, &ann).cost(0)])
            .await
            .unwrap();
        assert_eq!(peek.statuses()[0].remaining(), 4, "{name}");
    }
}

#[test]
fn boxed_extractor_has_an_alternative() {
    let boxed: Box<dyn KeyExtractor> = Box::new(key::bearer());
    let by = key::first_of([boxed, Box::new(key::method())]);
    assert_eq!(key_of(&by, &to("/")), Some(key::method().key_of("GET")));
}

#[test]
fn first_of_visits_keys_with_their_scopes() {
    let by = key::header("x-api-key").or(key::client_ip());
    let request = from(
        with(&[("x-api-key", "ann"), ("x-api-key", "bob")]),
        "192.0.2.7",
    );
    let mut seen = Vec::new();
    by.each_key(&RequestHead::of(&request), &mut |key| {
        seen.push((key.scope().as_str(), key.as_bytes().to_vec()))
    });
    let (header, address) = (
        key::header("x-api-key").scope().as_str(),
        key::client_ip().scope().as_str(),
    );
    assert_eq!(
        seen,
        [
            (header, b"ann".to_vec()),
            (header, b"bob".to_vec()),
            (address, vec![192, 0, 2, 7])
        ]
    );
}

#[test]
fn combinations_of_all_sent_keys_are_visited() {
    let (address, header) = (key::client_ip(), key::header("x-api-key"));
    let by = key::all((address.clone(), header.clone().or(key::everyone())));
    let request = from(
        with(&[("x-api-key", "ann"), ("x-api-key", "bob")]),
        "192.0.2.7",
    );
    let head = RequestHead::of(&request);
    let mut seen = Vec::new();
    by.each_key(&head, &mut |key| seen.push(key.as_bytes().to_vec()));
    let client = address.extract(&head).unwrap();
    let others = [
        header.key_of("ann"),
        header.key_of("bob"),
        Key::EVERYONE,
        header.key_of(""),
    ];
    assert_eq!(
        seen,
        others.map(|other| by.key_of([&client, &other]).as_bytes().to_vec())
    );
    let mut seen = 0;
    by.each_key(
        &RequestHead::of(&with(&[("x-api-key", "ann")])),
        &mut |_| seen += 1,
    );
    assert_eq!(seen, 0, "an address is missing");
}

#[test]
fn cloned_combinations_count_for_several_limits() {
    let tenant = String::from("ann");
    let tenant = key::from_fn("tenant", move |_| Some(tenant.clone()));
    let client = key::header("x-api-key").or(tenant);
    let pair = key::all((client.clone(), key::method()));
    let policy = Policy::new()
        .limit(Limit::new("minute", Quota::per_minute(100)).by(client.clone()))
        .limit(Limit::new("hour", Quota::per_hour(1_000)).by(client))
        .limit(Limit::new("each minute", Quota::per_minute(10)).by(pair.clone()))
        .limit(Limit::new("each hour", Quota::per_hour(100)).by(pair));
    assert_eq!(policy.keys().len(), 2);
}
