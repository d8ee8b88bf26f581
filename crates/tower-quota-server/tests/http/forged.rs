//! Fields that clients forge, and fields that gateways forget.

use tower_quota_server::http::HttpOptions;

use crate::server::{Server, detail, status};

const RULES: &str = "limits: [{ name: minute, quota: 2/minute }]";

fn trusting(networks: &[&str]) -> HttpOptions {
    let mut options = HttpOptions::default();
    options.trusted_proxies = networks.iter().map(|text| text.parse().unwrap()).collect();
    options
}

#[tokio::test]
async fn untrusted_peer_gets_403() {
    for networks in [&["192.0.2.0/24", "::1"][..], &[]] {
        let server = Server::with(RULES, trusting(networks)).await;
        let message = detail(server.ask("192.0.2.1"), 403).await;
        assert!(
            message.starts_with("this gateway is not trusted"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn left_addresses_are_never_the_client() {
    let server = Server::with(RULES, trusting(&["127.0.0.1", "10.0.0.0/8"])).await;
    // Two gateways append the address of their peer.
    for (list, expected) in [
        ("192.0.2.1, 10.1.2.3", 204),
        ("198.51.100.1, 192.0.2.1, 10.1.2.3", 204),
        ("198.51.100.2, 203.0.113.9, 192.0.2.1,10.1.2.3", 429),
        ("unknown, 192.0.2.1, 10.1.2.3", 429),
    ] {
        assert_eq!(status(server.ask(list)).await, expected, "{list}");
    }
    assert_eq!(server.statuses(&["192.0.2.2, 10.1.2.3"]).await, [204]);
    // Several lines are one list, and the client wrote the first line.
    let lines = server
        .ask("198.51.100.3")
        .header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(status(lines).await, 429);
}

#[tokio::test]
async fn made_up_keys_share_the_address_in_deployed_limits() {
    let server = Server::start(include_str!("../../../../ops/limits/rules.yaml")).await;
    for number in 0..=200 {
        let made_up = server.ask("192.0.2.1");
        let made_up = made_up.header("X-Api-Key", format!("pro_{number}"));
        let expected = if number < 200 { 204 } else { 429 };
        assert_eq!(status(made_up).await, expected, "request {number}");
    }
}

#[tokio::test]
async fn garbled_addresses_count_for_the_gateway() {
    let server = Server::start(RULES).await;
    let long = "x".repeat(5_000);
    for (garbled, expected) in [
        ("not-an-address", 204),
        ("192.0.2.1, 999.1.1.1", 204),
        ("", 429),
        (",,,", 429),
        (&long, 429),
    ] {
        assert_eq!(status(server.ask(garbled)).await, expected, "{garbled}");
    }
}

#[tokio::test]
async fn documents_cannot_trust_the_client() {
    // The document is of a service behind one proxy. Here, the peer is the client itself.
    for trust in ["hops: 1", "trusted_proxies: [127.0.0.0/8]"] {
        let rules = format!("client_ip: {{ {trust} }}\n{RULES}");
        let server = Server::start(&rules).await;
        let forged = ["198.51.100.1, 192.0.2.1", "198.51.100.2, 192.0.2.1"];
        assert_eq!(server.statuses(&forged).await, [204, 204]);
        assert_eq!(
            server.statuses(&["198.51.100.3, 192.0.2.1"]).await,
            [429],
            "{trust}"
        );
    }
}

#[tokio::test]
async fn forgotten_fields_are_problems() {
    let server = Server::start(RULES).await;
    let fields = [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/"),
        ("x-forwarded-host", "a"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    for (missing, _) in fields {
        let mut ask = server.client.get(format!("{}/v1/auth", server.address));
        for (name, value) in fields.iter().filter(|(name, _)| *name != missing) {
            ask = ask.header(*name, *value);
        }
        let message = detail(ask, 400).await;
        assert!(
            message.starts_with(&format!("the gateway sends no {missing}: ")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn doubled_fields_are_problems() {
    let server = Server::start(RULES).await;
    for (name, value) in [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/free"),
        ("x-forwarded-host", "b"),
    ] {
        let message = detail(server.ask("192.0.2.1").header(name, value), 400).await;
        assert!(
            message.starts_with(&format!("the gateway sends {name} twice: ")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn garbled_targets_are_problems() {
    let server = Server::start(RULES).await;
    for (method, target) in [
        ("GE T", "/"),
        ("", "/"),
        ("GET", ""),
        ("GET", "http://"),
        ("GET", "/a b"),
        ("CONNECT", "a:443"),
    ] {
        let message = detail(server.ask_about(method, target, "192.0.2.1"), 400).await;
        assert!(
            message.contains("cannot be read"),
            "{method} {target}: {message}"
        );
    }
    let long = format!("/{}", "x".repeat(60_000));
    assert_eq!(
        status(server.ask_about("GET", &long, "192.0.2.1")).await,
        204
    );
}

#[tokio::test]
async fn other_fields_do_not_replace_forwarded_fields() {
    let rules = "
limits: [{ name: minute, quota: 1/minute, key: { all: [method, path, host] } }]
skip: [{ path: /free }, { host: free.example.com }, { method: PURGE }]
";
    let server = Server::start(rules).await;
    let forged = || {
        let ask = server.ask("192.0.2.1").header("X-Original-URI", "/free");
        let ask = ask.header("X-Original-URL", "http://free.example.com/free");
        ask.header("X-Original-Method", "PURGE")
    };
    assert_eq!(status(forged()).await, 204);
    assert_eq!(status(forged().header("x", "1")).await, 429);
    // The host of a target in absolute form is the choice of the client too.
    let ask = server.ask_about("GET", "http://free.example.com/", "192.0.2.1");
    assert_eq!(status(ask).await, 429);
}
