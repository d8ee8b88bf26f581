//! What each extractor reads.

use std::net::{IpAddr, SocketAddr};

use http::{Method, Request};
use tower_quota::key::{self, KeyExtractor};
use tower_quota::{Key, Name, RequestHead};

fn request() -> Request<()> {
    Request::new(())
}

fn with<T: Clone + Send + Sync + 'static>(extension: T) -> Request<()> {
    let mut request = request();
    request.extensions_mut().insert(extension);
    request
}

/// The key's bytes; its scope must be the extractor's.
fn read(extractor: &impl KeyExtractor, request: &Request<()>) -> Option<Vec<u8>> {
    let key = extractor.extract(&RequestHead::of(request))?;
    assert_eq!(key.scope(), extractor.scope());
    Some(key.as_bytes().to_vec())
}

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn the_client_is_the_peer_and_no_header_is_believed() {
    let mut forged = with(socket("192.0.2.1:443"));
    for name in ["x-forwarded-for", "x-real-ip", "cf-connecting-ip", "true-client-ip"] {
        forged.headers_mut().insert(name, "198.51.100.9".parse().unwrap());
    }
    forged.headers_mut().insert("forwarded", "for=198.51.100.9".parse().unwrap());
    assert_eq!(read(&key::client_ip(), &forged), Some(vec![192, 0, 2, 1]));
    assert_eq!(read(&key::client_ip(), &request()), None);
}

#[test]
fn ports_and_the_lower_half_of_ipv6_do_not_count() {
    let client = key::client_ip();
    assert_eq!(read(&client, &with(socket("192.0.2.1:1"))), read(&client, &with(socket("192.0.2.1:2"))));
    let v6 = |text: &str| read(&client, &with(text.parse::<IpAddr>().unwrap())).unwrap();
    assert_eq!(v6("2001:db8:0:1::1"), v6("2001:db8:0:1:ffff::2"));
    assert_ne!(v6("2001:db8:0:1::1"), v6("2001:db8:0:2::1"));
    assert_eq!(v6("::ffff:192.0.2.1"), v6("192.0.2.1"));
}

#[cfg(feature = "axum")]
#[test]
fn axum_tells_the_peer() {
    let connected = with(axum::extract::ConnectInfo(socket("192.0.2.7:1")));
    assert_eq!(read(&key::client_ip(), &connected), Some(vec![192, 0, 2, 7]));
    // What an outer layer found out is preferred.
    let mut resolved = connected;
    resolved.extensions_mut().insert("198.51.100.1".parse::<IpAddr>().unwrap());
    assert_eq!(read(&key::client_ip(), &resolved), Some(vec![198, 51, 100, 1]));
}

#[test]
fn header_names_know_no_case_and_values_do() {
    let keyed = |value: &str| {
        let mut request = request();
        request.headers_mut().insert("x-api-key", value.parse().unwrap());
        request
    };
    let extractor = key::header("X-API-Key");
    assert_eq!(extractor.scope(), key::header("x-api-key").scope());
    assert_eq!(read(&extractor, &keyed("Ann")), Some(b"Ann".to_vec()));
    assert_ne!(read(&extractor, &keyed("Ann")), read(&extractor, &keyed("ann")));
    assert_eq!(read(&extractor, &keyed("")), None);
    assert_eq!(read(&extractor, &request()), None);
    assert_ne!(key::header("method").scope(), key::method().scope());
}

#[test]
fn a_header_value_need_not_be_text() {
    let mut request = request();
    request.headers_mut().insert("k", http::HeaderValue::from_bytes(b"\xff\xfe").unwrap());
    assert_eq!(read(&key::header("k"), &request), Some(b"\xff\xfe".to_vec()));
}

#[test]
fn header_names_are_checked() {
    assert!(key::try_header("two words").is_err());
    assert!(key::try_header("").is_err());
}

#[test]
#[should_panic(expected = "\"two words\" cannot be the name of a header")]
fn a_header_name_written_in_code_panics_with_the_reason() {
    let _ = key::header("two words");
}

#[test]
fn made_up_methods_share_one_counter() {
    let by = |method: Method| {
        let mut request = request();
        *request.method_mut() = method;
        read(&key::method(), &request).unwrap()
    };
    assert_eq!(by(Method::GET), b"GET");
    assert_ne!(by(Method::GET), by(Method::HEAD));
    assert_eq!(by("BREW".parse().unwrap()), by("WHEN".parse().unwrap()));
}

#[test]
fn closures_read_anything() {
    let by_path = key::from_fn("path", |head| Some(head.uri().path().to_owned()));
    assert_eq!(read(&by_path, &request()), Some(b"/".to_vec()));
    let by_id = key::from_fn("id", |head| head.extensions().get::<u64>().map(|id| id.to_be_bytes()));
    assert_eq!(read(&by_id, &with(7_u64)), Some(vec![0, 0, 0, 0, 0, 0, 0, 7]));
    assert_eq!(read(&by_id, &request()), None);
}

#[test]
fn combinations_need_all_their_parts_and_keep_them_apart() {
    let pair = |one: &'static str, other: &'static str| {
        key::all((key::from_fn("one", move |_| Some(one)), key::from_fn("other", move |_| Some(other))))
    };
    assert_ne!(read(&pair("ab", "c"), &request()), read(&pair("a", "bc"), &request()));
    assert_eq!(pair("a", "b").scope().as_str(), "(fn one + fn other)");

    let partly = key::all([key::header("a"), key::header("b")]);
    let mut request = request();
    request.headers_mut().insert("a", "1".parse().unwrap());
    assert_eq!(read(&partly, &request), None);
    request.headers_mut().insert("b", "2".parse().unwrap());
    assert!(read(&partly, &request).is_some());
}

#[test]
fn nested_combinations_have_scopes_of_their_own() {
    let left = key::all((key::all((key::everyone(), key::method())), key::client_ip()));
    let right = key::all((key::everyone(), key::all((key::method(), key::client_ip()))));
    assert_ne!(left.scope(), right.scope());
}

#[test]
fn everyone_is_one_key() {
    assert_eq!(key::everyone().extract(&RequestHead::of(&request())), Some(Key::EVERYONE));
}

#[test]
fn a_head_shows_no_secrets() {
    let mut request = Request::get("/path?token=secret").header("authorization", "secret").body(()).unwrap();
    request.extensions_mut().insert(Name::new("secret"));
    assert_eq!(format!("{:?}", RequestHead::of(&request)), "RequestHead(GET /path)");
}
