//! The clients with the most requests.

use tower_quota::{RateLimitLayer, TopWindow, key};

use crate::fixture::slow_store;
use crate::handle::{per_api_key, request_of};
use crate::shared::{answer_to, per_minute, policy_of, serve, stopped_layer};

#[tokio::test]
async fn most_refused_clients_are_listed_first() {
    let (service, handle) = serve(stopped_layer(per_api_key(1)));
    for client in ["ann", "bob", "ann", "ann", "cid", "bob"] {
        answer_to(&service, request_of(client)).await;
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
        (stopped_layer(per_api_key(9)), false),
        (stopped_layer(per_api_key(9)).count_busy_clients(), true),
    ] {
        let (service, handle) = serve(layer);
        for _ in 0..10_000 {
            answer_to(&service, request_of("ann")).await;
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
    let (service, handle) = serve(stopped_layer(per_api_key(1)));
    for bytes in [1_024, 1_025] {
        for _ in 0..2 {
            answer_to(&service, request_of(&"k".repeat(bytes))).await;
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
    let (service, handle) = serve(RateLimitLayer::new(slow_store(), per_api_key(1)));
    for _ in 0..2 {
        answer_to(&service, request_of("ann")).await;
    }
    assert_eq!(handle.top_refused(TopWindow::Hour).len(), 1);
}

#[tokio::test]
async fn refused_client_is_named_by_text() {
    let by = key::header("x-api-key").or(key::client_ip());
    let (service, handle) = serve(stopped_layer(policy_of(per_minute("key", 1).by(by))));
    for _ in 0..2 {
        answer_to(&service, request_of("ann")).await;
    }
    let text = handle.top_refused(TopWindow::Minute)[0].text().unwrap();
    assert_eq!(text, "ann");
    handle.reset("key", &text).await.unwrap();
    assert_eq!(answer_to(&service, request_of("ann")).await.status(), 200);
}
