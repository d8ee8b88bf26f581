//! Responses to refused requests.

use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower_quota::{
    Limit, MissingKey, Policy, Protocol, Quota, Reason, Refused, RequestHead, key,
    response::problem_details,
};

use crate::shared::{
    Limited, WITH_X, assert_field, assert_no_field, decision_of, field, per_minute, per_second,
    policy_of, text,
};

fn twice() -> Policy {
    policy_of(per_minute("say \"when\"", 2))
}

/// Sends two requests, which spend both units.
async fn spent(limited: Limited) -> Limited {
    for _ in 0..2 {
        assert_eq!(text(limited.get().await).await, "inner");
    }
    limited
}

#[tokio::test]
async fn problem_details_say_which_limit_and_when() {
    let limited = spent(Limited::new(twice())).await;
    let response = limited.get().await;
    assert_eq!(response.status(), 429);
    assert_field(&response, "content-type", "application/problem+json");
    assert_field(&response, "cache-control", "no-store");
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem,
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "Over the limit \"say \"when\"\": retry in 30 seconds.",
            "violated-policies": ["say \"when\""],
        })
    );
    assert_eq!(limited.inner.calls(), 2);
}

#[tokio::test]
async fn decision_makes_the_refusal_of_the_layer() {
    let response = spent(Limited::new(twice())).await.get().await;
    let decision = decision_of(&response).clone();
    let own = problem_details(&Refused::of(&decision).unwrap());
    assert_eq!(own.status(), response.status());
    for name in ["content-type", "cache-control", "retry-after"] {
        assert_eq!(own.headers()[name], response.headers()[name]);
    }
    let own = own.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(own, text(response).await);
}

#[tokio::test]
async fn own_layer_refuses_while_overloaded() {
    let overloaded = |request: &Request<()>, protocol| {
        let wait = Duration::from_millis(2_500);
        let refused = Refused::overloaded(RequestHead::of(request), wait);
        refused.respond(protocol, problem_details)
    };
    let get = Request::get("/").body(()).unwrap();
    let response = overloaded(&get, Protocol::Both);
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "3");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "title": "Request cannot be satisfied due to temporary server capacity constraints",
            "status": 503,
            "detail": "The service is overloaded: retry in 3 seconds.",
        })
    );
    let head = overloaded(&Request::head("/").body(()).unwrap(), Protocol::Both);
    assert!(head.body().is_end_stream());

    let mut call = Request::post("/").header("content-type", "application/grpc");
    call = call.version(http::Version::HTTP_2);
    let call = call.body(()).unwrap();
    let response = overloaded(&call, Protocol::Both);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["grpc-status"], "14");
    assert_eq!(response.headers()["grpc-retry-pushback-ms"], "2500");
    assert_eq!(overloaded(&call, Protocol::Http).status(), 503);
}

#[tokio::test]
async fn layer_prepares_the_body_of_the_decision() {
    let one = |quota| Limit::new("say \"when\"", quota);
    let second = policy_of(one(Quota::per_second(1)));
    let minute = policy_of(one(Quota::per_minute(1)));
    let open = minute.clone().limit(per_minute("open", 9));
    let two = minute.clone().limit(per_minute("two", 1));
    let more = |policy: Policy, names: &[&'static str]| {
        let limits = names.iter().map(|name| per_minute(*name, 1));
        limits.fold(policy, Policy::limit)
    };
    let five = more(two.clone(), &["three", "four", "five"]);
    let six = more(five.clone(), &["six"]);
    for (policy, detail) in [
        (second, r#"Over the limit "say "when"": retry in 1 second."#),
        (
            minute,
            r#"Over the limit "say "when"": retry in 60 seconds."#,
        ),
        (open, r#"Over the limit "say "when"": retry in 60 seconds."#),
        (
            two,
            r#"Over the limits "say "when"" and "two": retry in 60 seconds."#,
        ),
        (
            five,
            r#"Over the limits "say "when"", "two", "three", "four" and "five": retry in 60 seconds."#,
        ),
        (
            six,
            r#"Over the limits "say "when"", "two", "three", "four", "five" and 1 other: retry in 60 seconds."#,
        ),
    ] {
        let limited = Limited::new(policy);
        limited.get().await;
        let response = limited.get().await;
        let decision = decision_of(&response).clone();
        let own = problem_details(&Refused::of(&decision).unwrap()).into_body();
        let own = own.collect().await.unwrap().to_bytes();
        let body = text(response).await;
        assert_eq!(own, body);
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(problem["detail"], detail);
    }
}

#[tokio::test]
async fn browser_gets_problem_details_too() {
    let limited = spent(Limited::new(twice())).await;
    let response = limited
        .send(Request::get("/").header("accept", "text/html,*/*;q=0.8"))
        .await;
    assert_field(&response, "content-type", "application/problem+json");
    assert_no_field(&response, "vary");
    let head = limited.send(Request::head("/")).await;
    assert_eq!(
        field(&head, "content-length"),
        Some(text(response).await.len().to_string())
    );
    assert_eq!(text(head).await, "");
}

#[tokio::test]
async fn refusal_names_all_violated_policies() {
    let policy = policy_of(per_second("a", 1))
        .limit(per_second("roomy", 100))
        .limit(per_second("b", 1))
        .limit(per_second("c", 1));
    let limited = Limited::new(policy);
    limited.get().await;
    let problem: Value = serde_json::from_str(&text(limited.get().await).await).unwrap();
    assert_eq!(problem["violated-policies"], json!(["a", "b", "c"]));
    assert_eq!(
        problem["detail"],
        "Over the limits \"a\", \"b\" and \"c\": retry in 1 second."
    );
}

#[tokio::test]
async fn cost_above_capacity_is_explained() {
    let limited = Limited::new(policy_of(per_minute("units", 10).cost_with(|_| 11)));
    let response = limited.get().await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.headers().get(RETRY_AFTER), None);
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem["detail"],
        "The request costs more than the limit \"units\" can ever admit: 11 instead of 10."
    );
    assert_eq!(problem["violated-policies"], json!(["units"]));
    assert_eq!(problem["type"], "about:blank");
}

#[tokio::test]
async fn scope_of_any_text_makes_valid_json() {
    let missing = key::from_fn("tenant \"x\"\n\u{1}é", |_| None::<String>);
    let limit = per_minute("one", 1)
        .by(missing)
        .when_missing(MissingKey::Refuse);
    let response = Limited::new(policy_of(limit)).get().await;
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem["detail"],
        "The request cannot be counted: it has no tenant \"x\"\n\u{1}é."
    );
    assert_eq!(problem["type"], "about:blank");
    assert_eq!(problem["title"], "Bad Request");
    assert_eq!(problem.get("violated-policies"), None);
}

#[tokio::test]
async fn custom_refusal_gets_the_fields() {
    let limited = Limited::with(twice(), |layer| {
        layer.headers(WITH_X).on_refused(|refused| {
            assert!(matches!(refused.reason(), Reason::OverQuota(_)));
            let body = format!("{} {}", refused.head().uri().path(), refused.detail());
            Response::builder()
                .status(StatusCode::IM_A_TEAPOT)
                .header(CONTENT_TYPE, "text/plain")
                .body(body)
                .unwrap()
        })
    });
    let response = spent(limited).await.send(Request::get("/tea?milk")).await;
    assert_eq!(response.status(), 418);
    assert_field(&response, "content-type", "text/plain");
    assert_field(&response, "retry-after", "30");
    assert_field(&response, "ratelimit", r#""say \"when\"";r=0;t=30"#);
    assert_field(&response, "x-ratelimit-remaining", "0");
    assert_field(&response, "cache-control", "no-store");
    assert_eq!(
        text(response).await,
        "/tea Over the limit \"say \"when\"\": retry in 30 seconds."
    );
}

#[tokio::test]
async fn custom_refusal_keeps_its_own_headers() {
    let limited = Limited::with(twice(), |layer| {
        layer.on_refused(|refused| {
            let mut response = problem_details(refused);
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, 99.into());
            headers.insert(CACHE_CONTROL, "private, no-store".parse().unwrap());
            response
        })
    });
    let response = spent(limited).await.get().await;
    assert_field(&response, "retry-after", "99");
    assert_field(&response, "cache-control", "private, no-store");
}

#[tokio::test]
async fn head_gets_headers_and_no_body() {
    let limited = spent(Limited::new(twice())).await;
    let get = limited.get().await;
    let head = limited.send(Request::head("/")).await;
    assert_eq!(head.status(), 429);
    assert_eq!(field(&head, "ratelimit"), field(&get, "ratelimit"));
    assert_eq!(field(&head, "content-type"), field(&get, "content-type"));
    let length = text(get).await.len();
    assert_eq!(field(&head, "content-length"), Some(length.to_string()));
    assert!(head.body().is_end_stream());
    assert_eq!(text(head).await, "");
}

#[tokio::test]
async fn bodies_know_their_size() {
    let limited = spent(Limited::new(twice())).await;
    let refusal = limited.get().await;
    assert!(!refusal.body().is_end_stream());
    let size = refusal.body().size_hint().exact().unwrap();
    assert_eq!(text(refusal).await.len() as u64, size);

    let admitted = Limited::new(twice()).get().await;
    assert_eq!(admitted.body().size_hint().exact(), Some(5));
}

#[tokio::test]
async fn refusal_sees_seconds_of_the_wire() {
    let policy = policy_of(Limit::new("fast", Quota::per_second(8).burst(1)));
    let limited = Limited::with(policy, |layer| {
        layer.on_refused(|refused| {
            let wait = refused.retry_after().unwrap();
            Response::new(format!(
                "{} ms, {} s",
                wait.as_millis(),
                refused.retry_after_secs().unwrap()
            ))
        })
    });
    limited.get().await;
    let response = limited.get().await;
    assert_field(&response, "retry-after", "1");
    assert_eq!(text(response).await, "125 ms, 1 s");
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn refusal_may_be_a_stream() {
    use bytes::Bytes;
    use http_body_util::Full;

    let limited = Limited::with(twice(), |layer| {
        layer.on_refused(|_| {
            Response::new(axum::body::Body::new(Full::new(Bytes::from("streamed"))))
        })
    });
    let limited = spent(limited).await;
    assert_eq!(text(limited.get().await).await, "streamed");
    let head = limited.send(Request::head("/")).await;
    assert_field(&head, "content-length", "8");
    assert_eq!(text(head).await, "");
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn refusal_may_be_an_axum_response() {
    use axum::response::{Html, IntoResponse};

    let limited = Limited::with(twice(), |layer| {
        layer.on_refused(|refused| (refused.status(), Html(refused.detail())).into_response())
    });
    let response = spent(limited).await.get().await;
    assert_eq!(response.status(), 429);
    assert_field(&response, "content-type", "text/html; charset=utf-8");
    assert!(text(response).await.starts_with("Over the limit"));
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn refusal_may_be_a_status_with_body() {
    use axum::Json;

    let text_of_it = Limited::with(twice(), |layer| {
        layer.on_refused(|it| (it.status(), it.detail()))
    });
    let json = Limited::with(twice(), |layer| {
        layer.on_refused(|it| (it.status(), [("x-code", "7")], Json(it.detail())))
    });
    let status = Limited::with(twice(), |layer| layer.on_refused(|it| it.status()));
    for (limited, kind) in [
        (text_of_it, Some("text/plain; charset=utf-8")),
        (json, Some("application/json")),
        (status, None),
    ] {
        let response = spent(limited).await.get().await;
        assert_eq!(response.status(), 429);
        assert_eq!(field(&response, "content-type").as_deref(), kind);
        assert_field(&response, "retry-after", "30");
    }
}

#[tokio::test]
async fn refusal_without_body_is_empty() {
    let response = spent(Limited::with(twice(), |layer| {
        layer.on_refused(|_| Response::new(()))
    }))
    .await
    .get()
    .await;
    assert_eq!(text(response).await, "");
}
