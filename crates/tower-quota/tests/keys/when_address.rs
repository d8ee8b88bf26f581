//! Conditions on the client's address.

use std::net::{IpAddr, Ipv4Addr};

use http::Request;
use tower_quota::key;
use tower_quota::when::{self, PatternError};

use crate::holds;

fn from(address: &str) -> http::request::Builder {
    Request::get("/").extension(address.parse::<IpAddr>().unwrap())
}

#[test]
fn address_is_found_in_its_network() {
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
            "64:ff9b::198.18.0.0/111",
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
        ("198.19.255.255", true),
        ("64:ff9b::203.0.113.9", true),
        ("64:ff9b::203.0.114.9", false),
        ("2001:db8:ffff::1", true),
        ("2001:db9::", false),
        ("::1", false),
    ] {
        assert_eq!(holds(&listed, from(address)), expected, "{address}");
    }
    assert!(!holds(&listed, Request::get("/")), "no address");
}

#[test]
fn family_has_no_address_of_the_other() {
    let (v4, v6) = (
        when::address_in(key::client_ip(), ["0.0.0.0/0"]),
        when::address_in(key::client_ip(), ["::/0"]),
    );
    for (address, expected) in [
        ("192.0.2.1", true),
        ("::ffff:192.0.2.1", true),
        ("2001:db8::1", false),
    ] {
        assert_eq!(holds(&v4, from(address)), expected, "{address}");
        assert_eq!(holds(&v6, from(address)), !expected, "{address}");
    }
    let none = when::address_in(key::client_ip(), [""; 0]);
    assert!(!holds(&none, from("192.0.2.1")));
}

#[test]
fn long_list_finds_the_same() {
    // Every other /24 of 10.0.0.0/9, unsorted, with duplicates and nested networks.
    let nets = (0..32_768_u32)
        .map(|i| i * 7_919 % 32_768)
        .filter(|i| i % 2 == 0);
    let texts: Vec<String> = nets
        .flat_map(|i| {
            let [_, _, b, c] = i.to_be_bytes();
            [
                format!("10.{b}.{c}.64/26"),
                format!("10.{b}.{c}.0/24"),
                format!("10.{b}.{c}.9"),
            ]
        })
        .collect();
    let listed = when::address_in(key::client_ip(), &texts);
    for i in 0..40_000_u32 {
        let [_, a, b, c] = (i * 104_729 % (40_000 * 256)).to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(10, a, b, c));
        let expected = a < 128 && b % 2 == 0;
        assert_eq!(
            holds(&listed, Request::get("/").extension(address)),
            expected,
            "{address}"
        );
    }
}

#[test]
fn invalid_network_is_an_error() {
    for text in [
        "",
        "203.0.113.0/33",
        "203.0.113/24",
        "10.0.0.1/",
        "2001:db8::/129",
        "example.com",
        " 10.0.0.1",
    ] {
        let listed = when::try_address_in(key::client_ip(), ["10.0.0.0/8", text]);
        assert_eq!(listed.unwrap_err(), PatternError::Network(text.into()));
    }
}
