use std::net::IpAddr;

use http::Request;

use super::{ClientIp, Proxies, Source, client_ip};
use crate::head::RequestHead;
use crate::key::Mistake;

fn mistake(client: &ClientIp, peer: &str, line: Option<(&'static str, &str)>) -> Option<Mistake> {
    let mut request = Request::new(());
    if !peer.is_empty() {
        let peer: IpAddr = peer.parse().unwrap();
        request.extensions_mut().insert(peer);
    }
    if let Some((name, value)) = line {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    client.mistake(&RequestHead::of(&request))
}

#[test]
fn private_peer_that_forwards_is_a_mistake() {
    let untrusted = |header: &str| {
        let header = header.to_owned();
        Some(Mistake::UntrustedProxy { header })
    };
    let direct = client_ip();
    for peer in [
        "127.0.0.1",
        "10.1.2.3",
        "172.31.0.1",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "::1",
        "fd00::1",
    ] {
        for header in [
            "x-forwarded-for",
            "forwarded",
            "x-real-ip",
            "cf-connecting-ip",
        ] {
            assert_eq!(
                mistake(&direct, peer, Some((header, "192.0.2.1"))),
                untrusted(header)
            );
        }
        assert_eq!(mistake(&direct, peer, None), None);
    }
    for peer in ["192.0.2.1", "100.128.0.1", "172.32.0.1", "2001:db8::1"] {
        assert_eq!(
            mistake(&direct, peer, Some(("x-forwarded-for", "192.0.2.1"))),
            None,
            "{peer}"
        );
    }
    let elsewhere = direct.behind(Proxies::networks(["10.0.0.0/8"]), Source::XForwardedFor);
    let line = Some(("x-forwarded-for", "192.0.2.1"));
    assert_eq!(
        mistake(&elsewhere, "172.17.0.1", line),
        untrusted("x-forwarded-for")
    );
    assert_eq!(mistake(&elsewhere, "10.0.0.1", line), None);
}

#[test]
fn missing_peer_or_header_is_a_mistake() {
    let networks = client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XRealIp);
    let hops = client_ip().behind(Proxies::hops(1), Source::XRealIp);
    for client in [client_ip(), networks.clone(), hops.clone()] {
        assert_eq!(mistake(&client, "", None), Some(Mistake::NoPeerAddress));
    }
    assert_eq!(mistake(&hops, "", Some(("x-real-ip", "192.0.2.1"))), None);
    let header = String::from("x-real-ip");
    for client in [networks, hops] {
        let missing = Some(Mistake::NoForwardedAddress {
            header: header.clone(),
        });
        assert_eq!(
            mistake(&client, "10.0.0.1", Some(("x-forwarded-for", "192.0.2.1"))),
            missing
        );
    }
}

#[test]
fn mistake_names_the_value_and_the_fix() {
    let texts = [
        (
            Mistake::NoPeerAddress,
            "into_make_service_with_connect_info::<SocketAddr>()",
        ),
        (
            Mistake::UntrustedProxy {
                header: "x-real-ip".into(),
            },
            "key::client_ip().behind(Proxies::networks(",
        ),
        (
            Mistake::NoForwardedAddress {
                header: "x-real-ip".into(),
            },
            "`ClientIp::behind`",
        ),
    ];
    for (mistake, part) in texts {
        assert!(mistake.to_string().contains(part), "{mistake}");
    }
}
