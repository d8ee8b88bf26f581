//! The order in which classes are refused.

use http::Request;
use tower::Service;
use tower_quota::{key, when};
use tower_quota_shed::{Cause, Priority, ShedLayer};

use crate::service::{around, ask, fixed, get, start};

fn with_classes(layer: ShedLayer) -> ShedLayer {
    layer.priority(|head| {
        let name = head.uri().path().trim_start_matches('/');
        Priority::ALL.into_iter().find(|class| class.name() == name)
    })
}

#[tokio::test]
async fn low_classes_leave_room_for_the_recent_mix() {
    let layer = with_classes(fixed(40));
    let mut service = around(&layer);
    let mut running = Vec::new();
    // Two of three requests are critical. The mix is looked at after 64 arrivals above half of the limit.
    for round in 0..300 {
        let path = if round % 3 == 0 { "/low" } else { "/critical" };
        running.push(start(&mut service, get(path)).await);
        while layer.handle().stats().in_progress > 30 {
            running.remove(0);
            tokio::task::yield_now().await;
        }
    }
    // Three eighths of the places are left to critical requests.
    let in_progress = layer.handle().stats().in_progress;
    assert!((25..=30).contains(&in_progress), "{in_progress}");
    assert_eq!(ask(&mut service, get("/low")).await, 503);
    assert_eq!(ask(&mut service, get("/background")).await, 503);
    for _ in in_progress..40 {
        running.push(start(&mut service, get("/critical")).await);
    }
    assert_eq!(layer.handle().stats().in_progress, 40);
    assert_eq!(ask(&mut service, get("/critical")).await, 503);
    let stats = layer.handle().stats();
    assert_eq!(stats.refused(Priority::Background, Cause::Priority), 1);
    assert_eq!(stats.refused(Priority::Critical, Cause::Limit), 1);
}

#[tokio::test]
async fn doubtful_request_gets_no_better_class() {
    for (class, expected) in [(Priority::Low, "low"), (Priority::High, "normal")] {
        let is_crawler = when::key_in(key::header("x-client"), ["crawler"]);
        let layer = fixed(1).priority(class.when(is_crawler));
        let mut service = around(&layer);
        let (_running, _finish) = start(&mut service, get("/")).await;
        let request = Request::get("/")
            .header("x-client", "crawler")
            .header("x-client", "browser");
        let refused = service.call(request.body(()).unwrap()).await.unwrap();
        assert_eq!(refused.headers()["tower-quota-shed-priority"], expected);
    }
}

#[tokio::test]
async fn lowest_class_alone_fills_every_place() {
    let layer = with_classes(fixed(8));
    let mut service = around(&layer);
    let mut running = Vec::new();
    for _ in 0..200 {
        running.push(start(&mut service, get("/background")).await);
        running.truncate(8);
    }
    assert_eq!(layer.handle().stats().in_progress, 8);
}

#[tokio::test]
async fn only_trusted_callers_choose_a_class() {
    let layer = fixed(1)
        .priority(Priority::from_header("x-priority", when::path("/internal")).unwrap())
        .priority(Priority::Low.when(when::path("/suggest")));
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    for (path, header, class) in [
        ("/internal", "CRITICAL", "critical"),
        ("/internal", "urgent", "normal"),
        ("/public", "critical", "normal"),
        ("/suggest", "critical", "low"),
    ] {
        let request = Request::get(path).header("x-priority", header);
        let refused = service.call(request.body(()).unwrap()).await.unwrap();
        assert_eq!(refused.headers()["tower-quota-shed-priority"], class);
    }
    let error = Priority::from_header("x priority", when::path("/")).err();
    assert!(error.unwrap().to_string().contains("x priority"));
}
