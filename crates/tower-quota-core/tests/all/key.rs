//! Tests keys and names.

use std::collections::HashSet;
use std::net::IpAddr;

use tower_quota_core::{Key, Name};

const USER: Name = Name::new("user");

#[test]
fn bytes_and_scope_make_the_key() {
    assert_eq!(Key::new(USER, b"ann"), Key::owned(USER, "ann"));
    assert_ne!(Key::new(USER, b"ann"), Key::new(Name::new("team"), b"ann"));
    assert_ne!(Key::new(USER, b"ann"), Key::new(USER, b"ann\0"));
    assert_ne!(Key::number(USER, 1), Key::number(USER, 256));
    // A key is the same whether its bytes are inline, up to 38 bytes, or allocated.
    for length in [0, 37, 38, 39, 5_000] {
        let text = "x".repeat(length);
        assert_eq!(
            Key::owned(USER, text.as_str()),
            Key::new(USER, text.as_bytes())
        );
        assert_eq!(Key::owned(USER, text.as_str()).as_bytes().len(), length);
    }
}

#[test]
fn ipv6_address_is_counted_by_network() {
    let key = |address: &str| Key::address(USER, address.parse::<IpAddr>().unwrap());
    assert_eq!(key("192.0.2.7"), key("::ffff:192.0.2.7"));
    assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
    assert_eq!(
        key("2001:db8:1:2::1"),
        key("2001:db8:1:2:ffff:ffff:ffff:ffff")
    );
    assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
    let shown = |key: Key<'_>| key.to_address().map(|address| address.to_string());
    assert_eq!(shown(key("::ffff:192.0.2.7")).as_deref(), Some("192.0.2.7"));
    assert_eq!(
        shown(key("2001:db8:1:2::1")).as_deref(),
        Some("2001:db8:1:2::")
    );
    assert_eq!(
        shown(key("192.0.2.7").to_static()).as_deref(),
        Some("192.0.2.7")
    );
}

#[test]
fn bytes_of_address_are_no_address() {
    let ip = Name::new("ip cf");
    for bytes in [
        &b"gold"[..],
        b"2001:d",
        b"203.0.113.9",
        &[203, 0, 113, 9],
        &[0; 17],
    ] {
        assert_eq!(Key::owned(ip, bytes).to_address(), None, "{bytes:?}");
    }
    let address = Key::address(ip, IpAddr::from([203, 0, 113, 9]));
    assert_eq!(
        address,
        Key::owned(ip, [203, 0, 113, 9]),
        "both count the same"
    );
}

#[test]
fn ipv4_behind_nat64_is_ipv4() {
    let key = |address: &str| Key::address(USER, address.parse::<IpAddr>().unwrap());
    assert_eq!(key("64:ff9b::192.0.2.7"), key("192.0.2.7"));
    assert_ne!(key("64:ff9b::192.0.2.7"), key("64:ff9b::192.0.2.8"));
    // Neighbouring prefixes count as IPv6, even the prefix for local translations (RFC 8215).
    assert_eq!(key("64:ff9b:1::192.0.2.7"), key("64:ff9b:1::192.0.2.8"));
    assert_ne!(key("64:ff9b:1::192.0.2.7"), key("192.0.2.7"));
}

#[test]
fn joined_parts_keep_their_borders() {
    let part = |text: &'static str| Key::owned(USER, text);
    let joined = |parts: &[Key<'static>]| Key::joined(Name::new("both"), parts);
    let keys = [
        joined(&[part("ab"), part("c")]),
        joined(&[part("a"), part("bc")]),
        joined(&[part("abc")]),
        joined(&[part("abc"), part("")]),
        joined(&[part(""), part("abc")]),
        joined(&[part("c"), part("ab")]),
        joined(&[Key::owned(Name::new("team"), "ab"), part("c")]),
        joined(&[]),
    ];
    let distinct: HashSet<Vec<u8>> = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    assert_eq!(distinct.len(), keys.len());
}

#[test]
fn digests_depend_on_seed_scope_and_bytes() {
    let (one, other) = ([1; 16], [2; 16]);
    let ann = Key::owned(USER, "ann");
    assert_eq!(ann.digest(&one), Key::new(USER, b"ann").digest(&one));
    assert_ne!(ann.digest(&one), ann.digest(&other));
    assert_ne!(ann.digest(&one), Key::owned(USER, "bob").digest(&one));
    assert_ne!(
        ann.digest(&one),
        Key::owned(Name::new("team"), "ann").digest(&one)
    );
    let many: HashSet<u128> = (0..100_000)
        .map(|number| Key::number(USER, number).digest(&one))
        .collect();
    assert_eq!(many.len(), 100_000);
}

#[test]
fn debug_of_key_hides_its_bytes() {
    let text = format!("{:?}", Key::owned(USER, "secret"));
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("user") && text.contains('6'), "{text}");
}

#[test]
fn names_are_kept_once() {
    let (one, other) = (
        Name::from(String::from("from a file")),
        Name::from(String::from("from a file")),
    );
    assert_eq!(one, other);
    assert!(std::ptr::eq(one.as_str(), other.as_str()));
    assert_eq!(Name::new("x").to_string(), "x");
}

/// Uses FNV-1a's published test values. Stored state has these numbers, so they must never change.
#[test]
fn name_numbers_are_fnv_1a() {
    for (text, id) in [
        ("", 0x811c_9dc5),
        ("a", 0xe40c_292c),
        ("b", 0xe70c_2de5),
        ("foobar", 0xbf9c_f968),
    ] {
        assert_eq!(Name::new(text).id(), id, "{text:?}");
    }
}
