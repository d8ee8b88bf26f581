//! Choices of limits for requests without a key.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Request, StatusCode};
use tower_quota::explain::{self, Explained, SampleContext};
use tower_quota::key::{self, KeyExtractor};
use tower_quota::{Key, Limit, MissingKey, Name, RequestHead};

use crate::fixture::{Limited, field, text};
use crate::shared::{assert_field, assert_no_field, per_minute, policy_of};

fn by_api_key(missing: Option<MissingKey>) -> Limited {
    let limit = per_minute("minute", 1).by(key::header("x-api-key"));
    Limited::new(policy_of(match missing {
        Some(missing) => limit.when_missing(missing),
        None => limit,
    }))
}

#[tokio::test]
async fn combination_without_part_shares_one_counter() {
    let by = key::all((key::client_ip(), key::header("x-api-key")));
    let limit = per_minute("pair", 1).by(by);
    let limited = Limited::new(policy_of(limit.when_missing(MissingKey::ShareOneCounter)));
    let from = |address: [u8; 4]| Request::get("/").extension(IpAddr::from(address));
    assert_eq!(limited.send(from([192, 0, 2, 1])).await.status(), 200);
    assert_eq!(limited.send(from([192, 0, 2, 2])).await.status(), 429);
    let keyed = from([192, 0, 2, 1]).header("x-api-key", "ann");
    assert_eq!(limited.send(keyed).await.status(), 200);
}

#[tokio::test]
async fn missing_keys_share_one_counter_if_chosen() {
    let limited = by_api_key(Some(MissingKey::ShareOneCounter));
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(limited.get().await.status(), 429);
    // An empty value is a missing key.
    let empty = Request::get("/").header("x-api-key", "");
    assert_eq!(limited.send(empty).await.status(), 429);
    let keyed = Request::get("/").header("x-api-key", "ann");
    assert_eq!(limited.send(keyed).await.status(), 200);
}

#[tokio::test]
async fn missing_key_is_refused_by_default() {
    let limited = by_api_key(None);
    for _ in 0..3 {
        assert_eq!(limited.get().await.status(), 400);
        let empty = Request::get("/").header("x-api-key", "");
        assert_eq!(limited.send(empty).await.status(), 400);
    }
    let keyed = Request::get("/").header("x-api-key", "ann");
    assert_eq!(limited.send(keyed).await.status(), 200);
}

#[tokio::test]
async fn missing_credentials_are_unauthenticated_by_default() {
    let (bearer, basic) = (key::bearer(), key::basic_user());
    let first = key::bearer().or(key::basic_user());
    for limit in [
        per_minute("one", 1).by(bearer),
        per_minute("one", 1).by(basic),
        per_minute("one", 1).by(first),
    ] {
        let limited = Limited::new(policy_of(limit));
        let response = limited.get().await;
        assert_eq!(response.status(), 401);
        assert!(field(&response, "www-authenticate").is_some());
    }
}

/// Reads the user of a session.
struct SessionUser;

impl KeyExtractor for SessionUser {
    fn scope(&self) -> Name {
        const { Name::new("session user") }
    }

    fn extract<'r>(&self, _: &RequestHead<'r>) -> Option<Key<'r>> {
        None
    }

    fn has_credentials(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn extractor_of_users_chooses_unauthenticated() {
    let shared: Arc<dyn KeyExtractor> = Arc::new(SessionUser);
    let named = |scope: &'static str| key::from_fn(scope, |_| None::<String>);
    for (by, status) in [
        (shared.clone(), 401),
        (Arc::new(explain::named("user", shared.clone())), 401),
        (Arc::new(key::bearer().or(shared.clone())), 401),
        (Arc::new(key::bearer().or(key::header("x-api-key"))), 400),
        (Arc::new(key::all((key::method(), shared))), 401),
        (Arc::new(named("bearer token")), 400),
        (Arc::new(key::cookie("bearer token")), 400),
    ] {
        let limited = Limited::new(policy_of(per_minute("minute", 1).by(by)));
        assert_eq!(limited.get().await.status(), status);
    }
}

#[tokio::test]
async fn sample_context_gives_no_key_to_requests() {
    let user = Arc::new(key::header("x-user"));
    let policy = || policy_of(per_minute("minute", 1).by(explain::named("user", user.clone())));
    let limited = Limited::new(policy());
    let sample = SampleContext::default().key("user", "ann");
    let request = || Request::get("/").extension(sample.clone());
    assert_eq!(limited.send(request()).await.status(), 400);
    let request = request().body(()).unwrap();
    let explained = policy().explainer().explain(&RequestHead::of(&request));
    assert!(matches!(explained, Explained::Limited(_)), "{explained:?}");
}

#[tokio::test]
async fn skipping_leaves_the_request_to_other_limits() {
    let limited = by_api_key(Some(MissingKey::Skip));
    for _ in 0..3 {
        let response = limited.get().await;
        assert_eq!(response.status(), 200);
        assert_no_field(&response, "ratelimit");
    }
}

#[tokio::test]
async fn refusal_names_missing_key_without_charge() {
    let policy = policy_of(per_minute("everyone", 2)).limit(
        per_minute("minute", 1)
            .by(key::header("X-Api-Key"))
            .when_missing(MissingKey::Refuse),
    );
    let limited = Limited::new(policy);
    let response = limited.get().await;
    assert_eq!(response.status(), 400);
    assert_no_field(&response, "retry-after");
    assert_no_field(&response, "ratelimit");
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem["detail"],
        "The request cannot be counted: it has no header x-api-key."
    );
    assert_eq!(problem["status"], 400);
    assert_eq!(limited.inner.calls(), 0);

    let keyed = limited
        .send(Request::get("/").header("x-api-key", "ann"))
        .await;
    assert!(
        field(&keyed, "ratelimit")
            .unwrap()
            .starts_with(r#""everyone";r=1;"#)
    );
}

#[tokio::test]
async fn refusal_calls_missing_extension_by_its_name() {
    let by_user = key::extension("user", |user: &String| Some(user.clone()));
    let limited = Limited::new(policy_of(per_minute("minute", 1).by(by_user)));
    let response = limited.get().await;
    assert_eq!(response.status(), 400);
    assert!(text(response).await.contains("it has no user."));
}

#[tokio::test]
async fn limits_of_one_key_choose_separately() {
    let policy = policy_of(
        per_minute("skips", 5)
            .by(key::header("k"))
            .when_missing(MissingKey::Skip),
    )
    .limit(
        per_minute("shares", 5)
            .by(key::header("k"))
            .when_missing(MissingKey::ShareOneCounter),
    );
    let limited = Limited::new(policy);
    assert_field(&limited.get().await, "ratelimit", r#""shares";r=4;t=48"#);
    let keyed = limited.send(Request::get("/").header("k", "ann")).await;
    assert_field(
        &keyed,
        "ratelimit",
        r#""skips";r=4;t=48, "shares";r=4;t=48"#,
    );
}

#[tokio::test]
async fn inapplicable_limit_ignores_missing_key() {
    let limit = per_minute("never", 1)
        .by(key::header("k"))
        .when_missing(MissingKey::Refuse);
    let limited = Limited::new(policy_of(limit.when(|_| false)));
    assert_eq!(limited.get().await.status(), 200);
}

#[tokio::test]
async fn header_with_two_values_gains_nothing() {
    for (missing, first) in [
        (Some(MissingKey::ShareOneCounter), StatusCode::OK),
        (Some(MissingKey::Skip), StatusCode::OK),
        (Some(MissingKey::Refuse), StatusCode::BAD_REQUEST),
        (Some(MissingKey::Unauthenticated), StatusCode::UNAUTHORIZED),
        (None, StatusCode::BAD_REQUEST),
    ] {
        let limited = by_api_key(missing);
        let twice = |other: &str| {
            Request::get("/")
                .header("x-api-key", "ann")
                .header("x-api-key", other)
        };
        // The same value twice is one value.
        assert_eq!(limited.send(twice("ann")).await.status(), 200);
        let once = Request::get("/").header("x-api-key", "ann");
        assert_eq!(limited.send(once).await.status(), 429);
        // Requests with several values share one counter, or are refused as requests without a key.
        assert_eq!(limited.send(twice("1")).await.status(), first);
        let next = if first == StatusCode::OK {
            StatusCode::TOO_MANY_REQUESTS
        } else {
            first
        };
        assert_eq!(limited.send(twice("2")).await.status(), next);
        assert_eq!(limited.send(twice("")).await.status(), next);
    }
}

#[tokio::test]
async fn two_values_in_combination_are_refused() {
    let by = key::all((key::client_ip(), key::header("x-api-key")));
    let limit = per_minute("pair", 1).by(by);
    let limited = Limited::new(policy_of(limit));
    let request = || Request::get("/").extension(IpAddr::from([192, 0, 2, 1]));
    let twice = request()
        .header("x-api-key", "ann")
        .header("x-api-key", "bob");
    assert_eq!(limited.send(twice).await.status(), 400);
    let once = request().header("x-api-key", "ann");
    assert_eq!(limited.send(once).await.status(), 200);
}

/// Returns the detail of the refusal of a request without a usable key.
async fn detail_of(limit: Limit, request: http::request::Builder) -> String {
    let limited = Limited::new(policy_of(limit));
    let response = limited.send(request).await;
    assert!(matches!(response.status().as_u16(), 400 | 401));
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    problem["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn refusal_names_conflicting_part_of_choice() {
    let by = key::header("x-api-key").or(key::client_ip());
    let twice = Request::get("/")
        .extension(IpAddr::from([192, 0, 2, 1]))
        .header("x-api-key", "ann")
        .header("x-api-key", "bob");
    assert_eq!(
        detail_of(per_minute("minute", 1).by(by), twice).await,
        "The request cannot be counted: it has conflicting values of header x-api-key."
    );
}

#[tokio::test]
async fn refusal_names_only_missing_part_of_combination() {
    let account = key::extension("account", |name: &String| Some(name.clone()));
    let by = key::all((account, key::client_ip()));
    let request = Request::get("/").extension(IpAddr::from([192, 0, 2, 1]));
    assert_eq!(
        detail_of(per_minute("login", 1).by(by), request).await,
        "The request cannot be counted: it has no account."
    );
}

#[tokio::test]
async fn refusal_names_each_choice_of_missing_key() {
    let user = key::from_fn("user", |_| None::<String>);
    let by = key::header("x-api-key").or(user).or(key::cookie("session"));
    assert_eq!(
        detail_of(per_minute("minute", 1).by(by), Request::get("/")).await,
        "The request cannot be counted: it has no header x-api-key or user or cookie session."
    );
}

#[tokio::test]
async fn limit_describes_missing_key_in_own_words() {
    let limit = || {
        per_minute("minute", 1)
            .by(key::bearer())
            .describe_key("token (get one at example.com/tokens)")
    };
    assert_eq!(
        detail_of(limit(), Request::get("/")).await,
        "The request is not authenticated: it has no token (get one at example.com/tokens)."
    );
    let limited = Limited::new(policy_of(limit()));
    let challenge = field(&limited.get().await, "www-authenticate");
    assert_eq!(challenge.as_deref(), Some("Bearer"));
}

#[tokio::test]
async fn missing_credentials_of_combination_have_their_challenge() {
    let by = key::all((key::method(), key::bearer()));
    let limited = Limited::new(policy_of(per_minute("minute", 1).by(by)));
    let challenge = field(&limited.get().await, "www-authenticate");
    assert_eq!(challenge.as_deref(), Some("Bearer"));
}
