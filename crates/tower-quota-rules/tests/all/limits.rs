//! Tests of limits in documents, with everything that a limit in code can do.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::response::RefusalBody;
use tower_quota::{
    CloseConnection, Flagged, MemoryStore, RateLimitLayer, RequestHead, ResponseBody, Store,
};
use tower_quota_rules::Rules;
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};

fn rules(text: &str) -> Rules {
    Rules::parse(text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn errors(text: &str) -> String {
    let problems = Rules::parse(text);
    problems.map(drop).unwrap_err().render(text, "rules.yaml")
}

/// Returns a layer with the counters in memory, and its clock.
fn layer(text: &str) -> (RateLimitLayer<MemoryStore>, ManualClock) {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(1_000, clock.clone());
    (RateLimitLayer::new(store, rules(text).policy()), clock)
}

fn request(path: &str, client: &str) -> Request<()> {
    let request = Request::get(path).header("x-api-key", client);
    let address = IpAddr::from([192, 0, 2, 1]);
    request.extension(address).body(()).unwrap()
}

/// Sends a request. The service answers 202 to a flagged request.
async fn send<S: Store>(
    layer: &RateLimitLayer<S>,
    request: Request<()>,
) -> Response<ResponseBody<()>> {
    let inner = service_fn(|request: Request<()>| async move {
        let mut response = Response::new(());
        if request.extensions().get::<Flagged>().is_some() {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        Ok::<_, Infallible>(response)
    });
    let Ok(response) = layer.layer(inner).oneshot(request).await;
    response
}

/// Returns the time of the paused runtime.
#[expect(clippy::disallowed_methods, reason = "the clock of tokio is virtual")]
fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

async fn status<S: Store>(layer: &RateLimitLayer<S>, client: &str) -> u16 {
    send(layer, request("/", client)).await.status().as_u16()
}

#[tokio::test]
async fn requests_in_progress_are_limited() {
    let (layer, _) = layer(
        "
defaults: { key: header x-api-key }
limits: [{ name: exports, quota: 1 at once, longest_hold: 15m }]
tiers: { pro: { limits: { exports: 2 at once ttl 5m } } }
overrides: { ann: { tier: pro }, bob: { limits: { exports: unlimited } } }
",
    );
    let running = send(&layer, request("/", "eve")).await;
    assert_eq!(running.status(), 200);
    assert_eq!(status(&layer, "eve").await, 429);
    drop(running);
    assert_eq!(status(&layer, "eve").await, 200);
    let two = [
        send(&layer, request("/", "ann")).await,
        send(&layer, request("/", "ann")).await,
    ];
    assert!(two.iter().all(|response| response.status() == 200));
    assert_eq!(status(&layer, "ann").await, 429);
    let free = send(&layer, request("/", "bob")).await;
    assert_eq!(
        (free.status().as_u16(), status(&layer, "bob").await),
        (200, 200)
    );
}

#[test]
fn tier_must_count_like_its_limit() {
    let text = "
limits: [{ name: exports, quota: 2 at once }, { name: minute, quota: 9/minute }]
tiers: { pro: { limits: { exports: 9/minute, minute: 2 at once } } }
overrides: { 192.0.2.1: { limits: { exports: 5/day } } }
";
    let said = errors(text);
    assert_eq!(
        said.matches("counts requests in progress").count(),
        2,
        "{said}"
    );
    assert_eq!(said.matches("counts per period").count(), 1, "{said}");
    for place in ["tiers.pro.limits.exports", "overrides", "rules.yaml:3"] {
        assert!(said.contains(place), "{place}: {said}");
    }
}

#[test]
fn unusable_hold_is_an_error() {
    for (fields, reason) in [
        ("quota: 2 at once, settle: handler", "releases its units"),
        ("quota: 2 at once, over: delay 1s up to 9s", "cannot delay"),
        ("quota: 2 at once, max_wait: 3s", "no turns"),
        ("quota: 9/minute, longest_hold: 3s", "no holds"),
        ("quota: 9/minute, over: delay 0s up to 9s", "a step of zero"),
        ("quota: 20000 at once", "at most 10000"),
    ] {
        let said = errors(&format!("limits: [{{ name: exports, {fields} }}]"));
        assert!(said.contains(reason), "{fields}: {said}");
    }
}

#[cfg(feature = "calendar")]
#[tokio::test]
async fn month_of_zone_ends_with_its_calendar() {
    let (layer, clock) = layer(
        "
defaults: { key: header x-api-key }
limits: [{ name: plan, quota: 1/month in Europe/Berlin }]
overrides: { ann: { limits: { plan: 2/month in Europe/Berlin } } }
",
    );
    // The clock starts on 21 November at 00:00 UTC. December begins in Berlin at 23:00 UTC.
    let rest = Duration::from_secs(9 * 86_400 + 23 * 3_600);
    assert_eq!(status(&layer, "eve").await, 200);
    assert_eq!(status(&layer, "eve").await, 429);
    assert_eq!(
        (status(&layer, "ann").await, status(&layer, "ann").await),
        (200, 200)
    );
    clock.advance(rest - Duration::from_micros(1));
    assert_eq!(
        (status(&layer, "eve").await, status(&layer, "ann").await),
        (429, 429)
    );
    clock.advance(Duration::from_micros(1));
    assert_eq!(
        (status(&layer, "eve").await, status(&layer, "ann").await),
        (200, 200)
    );
}

#[cfg(feature = "calendar")]
#[test]
fn unknown_zone_is_an_error() {
    let said = errors("limits: [{ name: plan, quota: 1/month in Mars/Phobos }]");
    assert!(
        said.contains("is not a time zone") && said.contains("rules.yaml:1"),
        "{said}"
    );
}

#[cfg(not(feature = "calendar"))]
#[test]
fn calendar_without_feature_is_an_error() {
    let said = errors("limits: [{ name: plan, quota: 1/month in UTC }]");
    assert!(said.contains("feature \"calendar\""), "{said}");
}

#[tokio::test]
async fn flagged_request_reaches_handler() {
    let (layer, _) = layer("limits: [{ name: fresh, quota: 1/hour, over: flag }]");
    assert_eq!(
        (status(&layer, "eve").await, status(&layer, "eve").await),
        (200, 202)
    );
}

#[tokio::test(start_paused = true)]
async fn tarpit_delays_each_further_request() {
    let (layer, _) = layer(
        "limits: [{ name: tarpit, quota: 1/hour fixed_window, over: delay 250ms up to 400ms }]",
    );
    for expected in [0, 250, 400, 400] {
        let start = tokio_now();
        assert_eq!(status(&layer, "eve").await, 200);
        assert_eq!(start.elapsed().as_millis(), expected);
    }
}

#[tokio::test]
async fn hidden_limit_has_no_fields() {
    let text = "limits: [{ name: inner, quota: 9/minute, hidden: true }, { name: outer, quota: 9/minute }]";
    let response = send(&layer(text).0, request("/", "eve")).await;
    let fields = format!("{:?}", response.headers());
    assert!(
        fields.contains("outer") && !fields.contains("inner"),
        "{fields}"
    );
}

#[tokio::test]
async fn connection_closes_after_refusals_of_document() {
    let (layer, _) = layer(
        "
close_after: 2
limits: [{ name: minute, quota: 1/minute, key: header x-api-key }]
",
    );
    let mut closes = Vec::new();
    for _ in 0..3 {
        let response = send(&layer, request("/", "eve")).await;
        closes.push(response.extensions().get::<CloseConnection>().is_some());
    }
    assert_eq!(closes, [false, false, true]);
    let said = errors("close_after: 0\nlimits: [{ name: minute, quota: 1/minute }]");
    assert!(said.contains("at least 1"), "{said}");
}

#[tokio::test]
async fn degraded_quota_counts_in_outage() {
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    let text = "
defaults: { key: header x-api-key }
instances: 9
limits: [{ name: day, quota: 900/day fixed_window, when_degraded: 2/second by client_ip }]
";
    let local = MemoryStore::with_clock(1_000, clock.clone());
    let layer = RateLimitLayer::new(store.clone(), rules(text).policy()).local_store(local);
    store.set_default(ScriptedAnswer::error("away"));
    let mut answers = Vec::new();
    for client in ["ann", "bob", "eve"] {
        answers.push(status(&layer, client).await);
    }
    assert_eq!(answers, [200, 200, 429]);
    clock.advance(Duration::from_millis(500));
    assert_eq!(status(&layer, "eve").await, 200);
    store.set_default(ScriptedAnswer::memory());
    assert_eq!(status(&layer, "eve").await, 200);
}

#[test]
fn two_choices_for_outage_are_an_error() {
    let limit = |fields: &str| format!("limits: [{{ name: day, quota: 9/day, {fields} }}]");
    let both = limit("on_store_failure: allow, when_degraded: 1/second");
    assert!(
        errors(&both).contains("two choices for an outage"),
        "{}",
        errors(&both)
    );
    rules(&format!(
        "defaults: {{ on_store_failure: refuse }}\n{}",
        limit("when_degraded: 1/second")
    ));
    for (fields, reason) in [
        (
            "when_degraded: 1/second by code tenant",
            "no key \"tenant\"",
        ),
        (
            "cost: 2, when_degraded: 1/second",
            "never holds more than 1",
        ),
        ("when_degraded: 1/second by", "is not a quota"),
        (
            "when_degraded: 1/second by nobody",
            "\"nobody\" is not a key",
        ),
    ] {
        let said = errors(&limit(fields));
        assert!(said.contains(reason), "{fields}: {said}");
    }
}

#[tokio::test]
async fn limit_describes_its_key() {
    let text =
        "limits: [{ name: minute, quota: 9/minute, key: header x-api-key, describe_key: API key }]";
    let (layer, _) = layer(text);
    let layer = layer.on_refused(|refused| {
        let detail = refused.detail();
        assert_eq!(detail, "The request cannot be counted: it has no API key.");
        Response::<RefusalBody>::default()
    });
    let keyless = Request::get("/").body(()).unwrap();
    send(&layer, keyless).await;
}

#[test]
fn quotas_of_all_kinds_are_explained_and_compared() {
    let old = "
limits:
  - { name: exports, quota: 2 AT ONCE }
  - { name: day, quota: 9/day, over: flag }
  - { name: burst, quota: 9/second, over: delay 250 ms up to 5 s }
";
    let new = old
        .replace("2 AT", "3 at")
        .replace("over: flag", "hidden: true")
        .replace("5 s", "10s");
    let (old, new) = (rules(old), rules(&new));
    let differences = old.document().differences(new.document());
    let shown: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "~ limits[exports].quota: 2 at once -> 3 at once",
            "- limits[day].over: flag",
            "+ limits[day].hidden: true",
            "~ limits[burst].over: delay 250ms up to 5s -> delay 250ms up to 10s",
        ]
    );
    let explanation = old.explain(&RequestHead::of(&request("/", "eve")));
    let limits = explanation.limits.iter();
    let shown: Vec<String> = limits
        .map(|limit| {
            let over = limit.over.map(|over| over.to_string());
            format!("{} {} {over:?} {}", limit.name, limit.quota, limit.shadow)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "exports 2 at once None false",
            "day 9/day Some(\"flag\") false",
            "burst 9/second Some(\"delay 250ms up to 5s\") false",
        ]
    );
}

#[test]
fn test_of_document_compares_quotas_not_texts() {
    let own_test = |quota: &str, expected: &str| {
        let text = format!(
            "limits: [{{ name: all, quota: {quota} }}]\ntests: [{{ request: {{}}, expect: {{ limits: {{ all: {expected} }} }} }}]"
        );
        rules(&text).test().is_passed()
    };
    for (quota, same) in [
        ("1000/minute", "1000/minute burst 1000"),
        ("60/minute", "1/second burst 60"),
        ("9/second gcra", "9/second"),
        ("5/day fixed_window", "5 per 24 hours fixed_window"),
    ] {
        assert!(own_test(quota, same), "{quota} {same}");
    }
    for (quota, other) in [
        ("1000/minute", "1000/minute burst 999"),
        ("60/minute", "1/second"),
        ("9/second leaky_bucket queue 9", "9/second"),
        ("5/day fixed_window", "5/day"),
        ("5/day fixed_window", "5/day fixed_window offset 1h"),
        ("2 at once", "2/minute fixed_window"),
    ] {
        assert!(!own_test(quota, other), "{quota} {other}");
    }
}

#[test]
fn route_with_too_many_limits_is_refused() {
    let document = |of_route: usize, more: &str| {
        let limits = |name: &str, count: usize| -> Vec<String> {
            let limit = |number| format!("{{ name: {name}{number}, quota: 9/minute{more} }}");
            (0..count).map(limit).collect()
        };
        let (all, route) = (limits("all", 30), limits("route", of_route));
        let text = format!(
            "limits: [{}]\nroutes: [{{ match: {{ path: /a }}, limits: [{}] }}]",
            all.join(", "),
            route.join(", ")
        );
        Rules::parse(&text).map(|rules| rules.warnings().to_string())
    };
    assert_eq!(document(2, "").unwrap(), "");
    let problems = document(3, "").unwrap_err().to_string();
    assert!(
        problems.contains("routes[0].limits") && problems.contains("\"route2\" is the 33rd"),
        "{problems}"
    );
    for conditional in [
        ", missing: skip",
        ", when: { method: GET }",
        ", shadow: true",
    ] {
        assert_eq!(document(3, conditional).unwrap(), "", "{conditional}");
    }
}
