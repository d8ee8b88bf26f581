//! Mistakes about peer addresses and forwarding headers.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use tower::Service;
use tower_quota::key::{self, Proxies, Source};
use tower_quota::{Check, MemoryStore, Policy, RateLimitLayer, when};

use crate::fixture::{Client, app, by_client, in_memory, is_silent, minute, proves};

const FORWARDED: &str = "x-forwarded-for: 192.0.2.1\r\n";

fn behind(proxies: Proxies) -> RateLimitLayer<MemoryStore> {
    in_memory(
        Policy::new().limit(minute().by(key::client_ip().behind(proxies, Source::XForwardedFor))),
    )
}

fn local() -> Proxies {
    Proxies::networks(["127.0.0.0/8"])
}

#[tokio::test]
async fn missing_peer_address_is_reported() {
    proves(
        Check::NoPeerAddress,
        3,
        || in_memory(by_client()),
        async |layer| {
            let mut client = Client::of_app_without_peers(app().layer(layer)).await;
            for _ in 0..3 {
                assert_eq!(client.get("/", "").await, 500);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn missing_peer_address_of_lists_is_reported() {
    let blocking = || {
        Policy::new()
            .limit(minute())
            .block(when::address_in(key::client_ip(), ["203.0.113.0/24"]))
    };
    proves(
        Check::NoPeerAddress,
        3,
        || in_memory(blocking()),
        async |layer| {
            Client::of_app_without_peers(app().layer(layer))
                .await
                .get_paths(3, "")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn untrusted_proxy_is_reported() {
    proves(
        Check::UntrustedProxy,
        30,
        || in_memory(by_client()),
        async |layer| {
            Client::of(app().layer(layer))
                .await
                .get_paths(30, FORWARDED)
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn few_forwarded_requests_are_no_proof() {
    is_silent(in_memory(by_client()), async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(19, FORWARDED)
            .await;
    })
    .await;
}

#[tokio::test]
async fn proxy_without_its_header_is_reported() {
    // The fourth path is the first that counts.
    proves(
        Check::NoForwardedAddress,
        107,
        || behind(local()),
        async |layer| {
            Client::of(app().layer(layer))
                .await
                .get_paths(110, "")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn health_checks_prove_no_missing_header() {
    is_silent(behind(local()), async |layer| {
        let mut client = Client::of(app().layer(layer)).await;
        for number in 0..1_200 {
            client
                .get(["/livez", "/readyz", "/metrics"][number % 3], "")
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_forwarded_address_disproves_missing_header() {
    is_silent(behind(local()), async |layer| {
        let mut client = Client::of(app().layer(layer)).await;
        client.get("/", FORWARDED).await;
        client.get_paths(200, "").await;
    })
    .await;
}

#[tokio::test]
async fn forged_header_disproves_no_untrusted_proxy() {
    let layer = in_memory(by_client());
    let handle = layer.handle();
    let mut app = app().layer(layer);
    let client = IpAddr::from([203, 0, 113, 9]);
    let proxies = [IpAddr::from([10, 0, 0, 1]); 20];
    for peer in [client].into_iter().chain(proxies) {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(peer);
        let forwarded = HeaderValue::from_static("192.0.2.1");
        request.headers_mut().insert("x-forwarded-for", forwarded);
        app.call(request).await.unwrap();
    }
    assert_eq!(handle.mistakes().count(Check::UntrustedProxy), 20);
}
