//! Clones of a layer, and their settings.

use http::{Response, StatusCode};
use tower::Layer;
use tower_quota::{Check, RateLimitLayer, Store};

use crate::fixture::Inner;
use crate::shared::{answer_of, per_hour, policy_of, stopped_layer};

/// Returns the status and the number of fields of a refusal.
async fn refusal<S: Store>(layer: &RateLimitLayer<S>) -> (u16, bool) {
    let service = layer.layer(Inner::default());
    let mut response = answer_of(&service).await;
    while response.status() == 200 {
        response = answer_of(&service).await;
    }
    let has_fields = response.headers().contains_key("ratelimit");
    (response.status().as_u16(), has_fields)
}

fn teapot<S: Store>(layer: RateLimitLayer<S>) -> RateLimitLayer<S> {
    let respond = |_: &tower_quota::Refused<'_>| {
        let mut response = Response::new("");
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    };
    layer.headers([]).on_refused(respond)
}

#[tokio::test]
async fn setting_of_clone_changes_only_the_clone() {
    let base = stopped_layer(policy_of(per_hour("hour", 2)));
    let other = teapot(base.clone());
    assert_eq!(refusal(&base).await, (429, true));
    assert_eq!(refusal(&other).await, (418, false));
}

#[tokio::test]
async fn clones_count_together() {
    let base = stopped_layer(policy_of(per_hour("hour", 2)));
    let other = teapot(base.clone());
    assert_eq!(answer_of(&base.layer(Inner::default())).await.status(), 200);
    assert_eq!(
        answer_of(&other.layer(Inner::default())).await.status(),
        200
    );
    assert_eq!(answer_of(&base.layer(Inner::default())).await.status(), 429);
}

#[tokio::test]
async fn clone_keeps_earlier_settings() {
    let base = teapot(stopped_layer(policy_of(per_hour("hour", 1))));
    let base = base.max_waiting(0).without_check(Check::CountedTwice);
    let clone = base.clone().shadow_header();
    assert_eq!(refusal(&clone).await, (418, false));
}

#[tokio::test]
async fn setting_after_use_changes_running_services() {
    let layer = stopped_layer(policy_of(per_hour("hour", 1)));
    let handle = layer.handle();
    let service = layer.layer(Inner::default());
    let layer = teapot(layer);
    handle
        .block("hour", &tower_quota::Key::EVERYONE, crate::shared::secs(9))
        .unwrap();
    assert_eq!(answer_of(&service).await.status(), 418);
    assert_eq!(
        answer_of(&layer.layer(Inner::default())).await.status(),
        418
    );
}
