//! Addresses: which are trusted, how much of them counts, what cannot be configured.

use std::net::IpAddr;

use http::{HeaderName, Request};
use tower_quota::key::{self, ClientIp, Proxies, Source};
use tower_quota::{ConfigError, RequestHead};

use crate::read;

fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(peer.parse::<IpAddr>().unwrap());
    request
}

#[test]
fn prefixes_decide_who_is_one_client() {
    let same = |client: &ClientIp, one: &str, other: &str| read(client, &from(one)) == read(client, &from(other));
    let client = key::client_ip();
    assert!(same(&client, "2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
    assert!(!same(&client, "2001:db8:0:1::1", "2001:db8:0:2::1"));
    for (bits, one, other) in [
        (48, "2001:db8:2::", "2001:db8:3::"),
        (56, "2001:db8:0:200::", "2001:db8:0:300::"),
        (65, "2001:db8::", "2001:db8::8000:0:0:0"),
        (128, "2001:db8::2", "2001:db8::3"),
        (1, "::2", "8000::"),
    ] {
        assert!(!same(&client.clone().prefix_v6(bits), one, other), "{bits}");
        assert!(bits == 1 || same(&client.clone().prefix_v6(bits - 1), one, other), "{bits}");
    }
    assert!(same(&client.clone().prefix_v4(24), "192.0.2.1", "192.0.2.255"));
    assert!(!same(&client.clone().prefix_v4(24), "192.0.2.1", "192.0.3.1"));
    assert!(!same(&client.clone().prefix_v4(32), "192.0.2.1", "192.0.2.2"));
    assert!(same(&client.clone().prefix_v4(1), "1.2.3.4", "127.0.0.1"));
    assert!(same(&client, "::ffff:192.0.2.1", "192.0.2.1"));
    // However short the prefixes are: IPv4 and IPv6 are not one client.
    assert!(!same(&client.prefix_v6(32), "32.1.13.184", "2001:db8::"));
}

#[test]
fn the_whole_address_can_be_asked_for() {
    let address = |request: &Request<()>| key::client_ip().prefix_v4(8).prefix_v6(8).address(&RequestHead::of(request));
    assert_eq!(address(&from("::ffff:192.0.2.1")), Some("192.0.2.1".parse().unwrap()));
    assert_eq!(address(&from("2001:db8::1")), Some("2001:db8::1".parse().unwrap()));
    assert_eq!(address(&Request::new(())), None);
}

#[test]
fn networks_are_trusted_as_they_are_written() {
    let trusted = |network: &str, peer: &str| {
        let client = key::client_ip().behind(Proxies::networks([network]), Source::XRealIp);
        let mut request = from(peer);
        request.headers_mut().insert("x-real-ip", "198.51.100.1".parse().unwrap());
        client.address(&RequestHead::of(&request)) == Some("198.51.100.1".parse().unwrap())
    };
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
        ("10.1.2.3/8", "10.0.0.1", "11.0.0.0"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"),
        ("::ffff:10.0.0.0/104", "10.0.0.1", "11.0.0.1"),
        (" 10.0.0.1 ", "10.0.0.1", "10.0.0.2"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
        ("::/0", "2001:db8::1", "10.0.0.1"),
    ] {
        assert!(trusted(network, inside), "{network} holds {inside}");
        assert!(!trusted(network, outside), "{network} does not hold {outside}");
    }
}

#[test]
fn nobody_is_trusted_when_no_network_is() {
    let nobody: [&str; 0] = [];
    let client = key::client_ip().behind(Proxies::networks(nobody), Source::XForwardedFor);
    let mut request = from("10.0.0.1");
    request.headers_mut().insert("x-forwarded-for", "198.51.100.1".parse().unwrap());
    assert_eq!(client.address(&RequestHead::of(&request)), Some("10.0.0.1".parse().unwrap()));
}

#[test]
fn what_cannot_be_meant_is_an_error() {
    for text in ["10.0.0.0/33", "10.0.0", "fd00::/129", "localhost", "", "10.0.0.0/8,fd00::/8", "fe80::1%eth0"] {
        assert_eq!(Proxies::try_networks([text]).unwrap_err(), ConfigError::Network(text.to_owned()));
    }
    for count in [0, 33, 255] {
        assert_eq!(Proxies::try_hops(count).unwrap_err(), ConfigError::ProxyHops(count));
    }
    for bits in [0, 33, 255] {
        let error = ConfigError::AddressPrefix { bits, most: 32 };
        assert_eq!(key::client_ip().try_prefix_v4(bits).unwrap_err(), error);
    }
    for bits in [0, 129, 255] {
        let error = ConfigError::AddressPrefix { bits, most: 128 };
        assert_eq!(key::client_ip().try_prefix_v6(bits).unwrap_err(), error);
    }
}

#[test]
#[should_panic(expected = "\"10.0.0.0/33\" is not a network")]
fn what_is_written_in_code_panics_with_the_reason() {
    let _ = Proxies::networks(["10.0.0.0/33"]);
}

#[test]
fn every_single_header_is_a_source_of_its_own() {
    let sources = [
        (Source::CfConnectingIp, "cf-connecting-ip"),
        (Source::TrueClientIp, "true-client-ip"),
        (Source::FlyClientIp, "fly-client-ip"),
        (Source::XRealIp, "x-real-ip"),
        (Source::XEnvoyExternalAddress, "x-envoy-external-address"),
        (Source::Header(HeaderName::from_static("x-client")), "x-client"),
    ];
    for (source, _) in &sources {
        for (_, header) in &sources {
            let client = key::client_ip().behind(Proxies::networks(["10.0.0.1"]), source.clone());
            let mut request = from("10.0.0.1");
            request.headers_mut().insert(*header, "198.51.100.1".parse().unwrap());
            let expected = if source_name(&client) == *header { "198.51.100.1" } else { "10.0.0.1" };
            assert_eq!(client.address(&RequestHead::of(&request)), Some(expected.parse().unwrap()), "{header}");
        }
    }
}

/// The header that a client's scope names.
fn source_name(client: &ClientIp) -> &'static str {
    key::KeyExtractor::scope(client).as_str().strip_prefix("client ip of ").unwrap()
}
