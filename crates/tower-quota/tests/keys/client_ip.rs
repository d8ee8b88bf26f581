//! Addresses: which proxies are trusted, which bits count.

use std::net::IpAddr;

use http::{HeaderName, Request};
use tower_quota::key::{self, ClientIp, KeyExtractor, Proxies, Source};
use tower_quota::{ConfigError, RequestHead};

use crate::read;

fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    request
        .extensions_mut()
        .insert(peer.parse::<IpAddr>().unwrap());
    request
}

#[test]
fn prefix_length_groups_clients() {
    let same = |client: &ClientIp, one: &str, other: &str| {
        read(client, &from(one)) == read(client, &from(other))
    };
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
        assert!(
            bits == 1 || same(&client.clone().prefix_v6(bits - 1), one, other),
            "{bits}"
        );
    }
    assert!(same(
        &client.clone().prefix_v4(24),
        "192.0.2.1",
        "192.0.2.255"
    ));
    assert!(!same(
        &client.clone().prefix_v4(24),
        "192.0.2.1",
        "192.0.3.1"
    ));
    assert!(!same(
        &client.clone().prefix_v4(32),
        "192.0.2.1",
        "192.0.2.2"
    ));
    assert!(same(&client.clone().prefix_v4(1), "1.2.3.4", "127.0.0.1"));
    assert!(same(&client, "::ffff:192.0.2.1", "192.0.2.1"));
    // IPv4 and IPv6 addresses are different clients, even with short prefixes.
    assert!(!same(&client.prefix_v6(32), "32.1.13.184", "2001:db8::"));
}

#[test]
fn address_is_returned_in_full() {
    let address = |request: &Request<()>| {
        key::client_ip()
            .prefix_v4(8)
            .prefix_v6(8)
            .address(&RequestHead::of(request))
    };
    assert_eq!(
        address(&from("::ffff:192.0.2.1")),
        Some("192.0.2.1".parse().unwrap())
    );
    assert_eq!(
        address(&from("2001:db8::1")),
        Some("2001:db8::1".parse().unwrap())
    );
    assert_eq!(address(&Request::new(())), None);
}

#[test]
fn network_is_trusted_in_any_spelling() {
    let trusted = |network: &str, peer: &str| {
        let client = key::client_ip().behind(Proxies::networks([network]), Source::XRealIp);
        let mut request = from(peer);
        request
            .headers_mut()
            .insert("x-real-ip", "198.51.100.1".parse().unwrap());
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
        assert!(
            !trusted(network, outside),
            "{network} does not hold {outside}"
        );
    }
}

#[test]
fn empty_list_trusts_no_proxy() {
    let none: [&str; 0] = [];
    let client = key::client_ip().behind(Proxies::networks(none), Source::XForwardedFor);
    let mut request = from("10.0.0.1");
    request
        .headers_mut()
        .insert("x-forwarded-for", "198.51.100.1".parse().unwrap());
    assert_eq!(
        client.address(&RequestHead::of(&request)),
        Some("10.0.0.1".parse().unwrap())
    );
}

#[test]
fn invalid_setting_is_an_error() {
    for text in [
        "10.0.0.0/33",
        "10.0.0",
        "fd00::/129",
        "localhost",
        "",
        "10.0.0.0/8,fd00::/8",
        "fe80::1%eth0",
    ] {
        assert_eq!(
            Proxies::try_networks([text]).unwrap_err(),
            ConfigError::Network(text.to_owned())
        );
    }
    for count in [0, 33, 255] {
        assert_eq!(
            Proxies::try_hops(count).unwrap_err(),
            ConfigError::ProxyHops(count)
        );
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
fn invalid_network_panics_with_the_reason() {
    let _ = Proxies::networks(["10.0.0.0/33"]);
}

#[test]
fn every_source_reads_its_own_header() {
    let sources = [
        (Source::CfConnectingIp, "cf-connecting-ip"),
        (Source::TrueClientIp, "true-client-ip"),
        (Source::FlyClientIp, "fly-client-ip"),
        (Source::XRealIp, "x-real-ip"),
        (Source::XEnvoyExternalAddress, "x-envoy-external-address"),
        (
            Source::Header(HeaderName::from_static("x-client")),
            "x-client",
        ),
    ];
    for (source, _) in &sources {
        for (_, header) in &sources {
            let client = key::client_ip().behind(Proxies::networks(["10.0.0.1"]), source.clone());
            let mut request = from("10.0.0.1");
            request
                .headers_mut()
                .insert(*header, "198.51.100.1".parse().unwrap());
            let expected = if source_name(&client) == *header {
                "198.51.100.1"
            } else {
                "10.0.0.1"
            };
            assert_eq!(
                client.address(&RequestHead::of(&request)),
                Some(expected.parse().unwrap()),
                "{header}"
            );
        }
    }
}

/// Returns the name of the header in a client's scope.
fn source_name(client: &ClientIp) -> &'static str {
    client.scope().as_str().strip_prefix("ip of ").unwrap()
}

#[test]
fn nat64_address_is_the_ipv4_inside() {
    let client = key::client_ip();
    assert_eq!(
        read(&client, &from("64:ff9b::192.0.2.1")),
        read(&client, &from("192.0.2.1"))
    );
    assert_ne!(
        read(&client, &from("64:ff9b::192.0.2.1")),
        read(&client, &from("64:ff9b::192.0.2.2"))
    );
    // Addresses with the prefix for local use (RFC 8215) may have any format.
    assert_ne!(
        read(&client, &from("64:ff9b:1::192.0.2.1")),
        read(&client, &from("192.0.2.1"))
    );
    let behind = client.behind(
        Proxies::networks(["64:ff9b::10.0.0.0/104"]),
        Source::XForwardedFor,
    );
    let mut request = from("10.0.0.1");
    request
        .headers_mut()
        .insert("x-forwarded-for", "64:ff9b::192.0.2.1".parse().unwrap());
    assert_eq!(
        behind.address(&RequestHead::of(&request)),
        Some("192.0.2.1".parse().unwrap())
    );
}

#[cfg(feature = "axum")]
#[test]
fn outer_layers_address_takes_precedence_over_axums() {
    let mut request = Request::new(());
    request
        .extensions_mut()
        .insert(axum::extract::ConnectInfo(std::net::SocketAddr::from((
            [192, 0, 2, 7],
            1,
        ))));
    assert_eq!(
        read(&key::client_ip(), &request).as_deref(),
        Some(&[192, 0, 2, 7][..])
    );
    request
        .extensions_mut()
        .insert("198.51.100.1".parse::<IpAddr>().unwrap());
    assert_eq!(
        read(&key::client_ip(), &request).as_deref(),
        Some(&[198, 51, 100, 1][..])
    );
}
