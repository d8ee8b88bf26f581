//! The clients with the most requests.

use http::StatusCode;
use tower::{Layer, ServiceExt};
use tower_quota::{Limit, Policy, Quota, RateLimitLayer, TopWindow, key};

use crate::fixture::{Inner, slow_store};
use crate::handle::{layer, per_api_key, request_of};

#[tokio::test]
async fn most_refused_clients_are_listed_first() {
    let layer = layer(per_api_key(1));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for client in ["ann", "bob", "ann", "ann", "cid", "bob"] {
        service.clone().oneshot(request_of(client)).await.unwrap();
    }
    let listed: Vec<(String, u64)> = handle
        .top_refused(TopWindow::Minute)
        .iter()
        .map(|client| {
            (
                String::from_utf8(client.key.as_bytes().to_vec()).unwrap(),
                client.at_least(),
            )
        })
        .collect();
    assert_eq!(listed, [(String::from("ann"), 2), (String::from("bob"), 1)]);
}

#[tokio::test]
async fn busy_clients_are_sampled_if_asked() {
    for (layer, is_counted) in [
        (layer(per_api_key(9)), false),
        (layer(per_api_key(9)).count_busy_clients(), true),
    ] {
        let (service, handle) = (layer.layer(Inner::default()), layer.handle());
        for _ in 0..10_000 {
            service.clone().oneshot(request_of("ann")).await.unwrap();
        }
        let top = handle.top_busy(TopWindow::Minute);
        assert_eq!(top.len(), usize::from(is_counted));
        // A binomial estimate: the bounds are 14 standard deviations away.
        assert!(
            top.iter()
                .all(|client| (2_000..18_000).contains(&client.at_least())),
            "{top:?}"
        );
    }
}

#[tokio::test]
async fn long_key_is_not_remembered() {
    let layer = layer(per_api_key(1));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for bytes in [1_024, 1_025] {
        for _ in 0..2 {
            service
                .clone()
                .oneshot(request_of(&"k".repeat(bytes)))
                .await
                .unwrap();
        }
        assert_eq!(
            handle.top_refused(TopWindow::Minute).len(),
            1,
            "{bytes} bytes"
        );
    }
}

#[tokio::test]
async fn slow_store_refusals_are_listed_too() {
    let layer = RateLimitLayer::new(slow_store(), per_api_key(1));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for _ in 0..2 {
        service.clone().oneshot(request_of("ann")).await.unwrap();
    }
    assert_eq!(handle.top_refused(TopWindow::Hour).len(), 1);
}

#[tokio::test]
async fn refused_client_is_named_by_text() {
    let by = key::header("x-api-key").or(key::client_ip());
    let layer = layer(Policy::new().limit(Limit::new("key", Quota::per_minute(1)).by(by)));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for _ in 0..2 {
        service.clone().oneshot(request_of("ann")).await.unwrap();
    }
    let text = handle.top_refused(TopWindow::Minute)[0].text().unwrap();
    assert_eq!(text, "ann");
    handle.reset("key", &text).await.unwrap();
    assert_eq!(
        service.oneshot(request_of("ann")).await.unwrap().status(),
        StatusCode::OK
    );
}
