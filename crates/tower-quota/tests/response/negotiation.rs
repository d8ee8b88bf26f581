//! Refusals in the form that the client prefers.

use http::{Request, Response};
use tower_quota::{Limit, MissingKey, Policy, Quota, key, response::problem_details};

use crate::shared::{Answer, Limited, field, text};

/// Returns the refusal by a limit with this name, which refuses all requests.
async fn refusal(name: &'static str, accept: &str) -> Answer {
    let limited = Limited::new(Policy::new().limit(Limit::new(name, Quota::per_minute(1))));
    limited.get().await;
    limited
        .send(Request::get("/").header("accept", accept))
        .await
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn client_gets_the_form_it_accepts() {
    for (accept, content_type, begin) in [
        ("*/*", "application/problem+json", "{\"type\":"),
        ("application/json", "application/problem+json", "{\"type\":"),
        ("image/png", "application/problem+json", "{\"type\":"),
        (
            "text/plain",
            "text/plain; charset=utf-8",
            "Over the limit \"one\": retry in 60 seconds.\n",
        ),
        (
            BROWSER,
            "text/html; charset=utf-8",
            "<!DOCTYPE html>\n<html lang=\"en\">",
        ),
    ] {
        let response = refusal("one", accept).await;
        assert_eq!(response.status(), 429, "{accept}");
        assert_eq!(
            field(&response, "content-type").as_deref(),
            Some(content_type),
            "{accept}"
        );
        assert_eq!(field(&response, "vary").as_deref(), Some("accept"));
        assert_eq!(
            field(&response, "cache-control").as_deref(),
            Some("no-store")
        );
        assert_eq!(field(&response, "retry-after").as_deref(), Some("60"));
        assert!(text(response).await.starts_with(begin), "{accept}");
    }
}

#[tokio::test]
async fn page_escapes_names_and_loads_nothing() {
    let page = text(refusal("<script>&\"", BROWSER).await).await;
    for part in [
        "<title>Too Many Requests</title>",
        "<h1>Too Many Requests</h1>",
        "<main>",
        "name=\"viewport\"",
        "<p>Over the limit \"&lt;script&gt;&amp;\"\": retry in 60 seconds.</p>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for part in ["<script", "src=", "href=", "url("] {
        assert!(!page.contains(part), "{part}: {page}");
    }
    assert!(page.len() < 1_024);
}

#[tokio::test]
async fn missing_key_refusal_is_negotiated() {
    let missing = key::from_fn("<b>tenant</b>", |_| None::<String>);
    let limit = Limit::new("one", Quota::per_minute(1))
        .by(missing)
        .when_missing(MissingKey::Refuse);
    let limited = Limited::new(Policy::new().limit(limit));
    let response = limited
        .send(Request::get("/").header("accept", BROWSER))
        .await;
    assert_eq!(response.status(), 400);
    let page = text(response).await;
    assert!(page.contains("<h1>Bad Request</h1>"), "{page}");
    assert!(
        page.contains("it has no &lt;b&gt;tenant&lt;/b&gt;."),
        "{page}"
    );
}

#[tokio::test]
async fn head_has_the_length_of_get() {
    let limited = Limited::new(Policy::new().limit(Limit::new("one", Quota::per_minute(1))));
    limited.get().await;
    for accept in ["text/plain", BROWSER, "*/*"] {
        let get = limited
            .send(Request::get("/").header("accept", accept))
            .await;
        let head = limited
            .send(Request::head("/").header("accept", accept))
            .await;
        assert_eq!(field(&head, "content-type"), field(&get, "content-type"));
        assert_eq!(
            field(&head, "content-length"),
            Some(text(get).await.len().to_string())
        );
        assert_eq!(text(head).await, "");
    }
}

#[tokio::test]
async fn chosen_refusals_are_not_negotiated() {
    let policy = || Policy::new().limit(Limit::new("one", Quota::per_minute(1)));
    let json = Limited::with(policy(), |layer| layer.on_refused(problem_details));
    let custom = Limited::with(policy(), |layer| layer.on_refused(|_| Response::new("no")));
    for limited in [json, custom] {
        limited.get().await;
        let response = limited
            .send(Request::get("/").header("accept", BROWSER))
            .await;
        assert_eq!(field(&response, "vary"), None);
        assert_ne!(
            field(&response, "content-type").as_deref(),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(
            field(&response, "ratelimit").as_deref(),
            Some("\"one\";r=0;t=60")
        );
        assert_eq!(field(&response, "retry-after").as_deref(), Some("60"));
    }
}
