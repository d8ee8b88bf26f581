//! Another policy beside the one in force: for some requests, or as a dry run.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{
    ClientKey, ConfigError, Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Store,
    key,
    store::{Charge, Operation},
    when,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Answer, Inner, Limited, ScriptedStore, StoreControl};

fn per_user(units: u64) -> Policy {
    Policy::new().limit(Limit::new("minute", Quota::per_minute(units)).by(key::header("user")))
}

async fn ask(limited: &Limited, user: &str) -> Answer {
    limited.send(Request::get("/").header("user", user)).await
}

fn decision(answer: &Answer) -> &Decision {
    answer.extensions().get().unwrap()
}

#[tokio::test]
async fn split_decides_matching_requests() {
    let chosen = |head: &tower_quota::RequestHead<'_>| head.headers()["user"] == "beta";
    let service = Limited::new(per_user(5).split(chosen, per_user(1)));
    for (user, allowed) in [("ann", 5), ("beta", 1)] {
        for _ in 0..allowed {
            assert_eq!(ask(&service, user).await.status(), StatusCode::OK);
        }
        let refused = ask(&service, user).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(decision(&refused).statuses()[0].limit, allowed);
    }
}

#[tokio::test]
async fn client_keeps_counter_across_split() {
    let layer = RateLimitLayer::new(
        MemoryStore::with_clock(100, ManualClock::default()),
        per_user(5),
    )
    .attach_decision();
    let (handle, service) = (layer.handle(), layer.layer(Inner::default()));
    let ask = async || {
        let request = Request::get("/").header("user", "ann").body(()).unwrap();
        service.clone().oneshot(request).await.unwrap()
    };
    for _ in 0..3 {
        ask().await;
    }
    handle.replace_policy(per_user(5).split(|_| true, per_user(5)));
    assert_eq!(decision(&ask().await).statuses()[0].remaining(), 1);
}

#[tokio::test]
async fn split_has_lists_of_its_own() {
    let blocking = per_user(5).block(when::key_in(key::header("user"), ["beta"]));
    let service = Limited::new(per_user(5).split(|_| true, blocking));
    assert_eq!(ask(&service, "ann").await.status(), StatusCode::OK);
    assert_eq!(ask(&service, "beta").await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn handle_finds_limits_of_both_policies() {
    let beta = Limit::new("beta", Quota::per_minute(1)).by(key::header("user"));
    let is_ann = |head: &tower_quota::RequestHead<'_>| head.headers()["user"] == "ann";
    let policy = per_user(5).split(is_ann, Policy::new().limit(beta));
    let store = MemoryStore::with_clock(100, ManualClock::default());
    let layer = RateLimitLayer::new(store, policy);
    let handle = layer.handle();
    let request = Request::get("/").header("user", "ann").body(()).unwrap();
    let ask = async || {
        let service = layer.layer(Inner::default());
        service.oneshot(request.clone()).await.unwrap().status()
    };
    let head = tower_quota::RequestHead::of(&request);
    for client in [ClientKey::from("ann"), ClientKey::from(head)] {
        assert_eq!(ask().await, StatusCode::OK);
        assert_eq!(ask().await, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(handle.peek("beta", client).await.unwrap().remaining(), 0);
        assert_eq!(
            handle.grant("beta", client, 1).await.unwrap().remaining(),
            1
        );
        assert_eq!(ask().await, StatusCode::OK);
        handle
            .block("beta", client, Duration::from_secs(60))
            .unwrap();
        assert!(handle.blocked_for("beta", client).unwrap().is_some());
        assert_eq!(ask().await, StatusCode::FORBIDDEN);
        assert_eq!(handle.reset("beta", client).await.unwrap().remaining(), 1);
        assert_eq!(handle.peek("minute", client).await.unwrap().remaining(), 5);
        assert!(handle.key("beta", client).is_ok());
    }
    assert!(handle.limiter("beta").is_ok());
}

#[tokio::test]
async fn dry_run_counts_and_refuses_nothing() {
    let candidate = per_user(2).choose(
        [Limit::new("route", Quota::per_minute(3)).by(key::header("user"))],
        |_, chosen| chosen.add(0, None),
    );
    let service = Limited::new(per_user(4).dry_run(candidate).unwrap());
    for would_refuse in [vec![], vec![], vec!["~minute"], vec!["~minute", "~route"]] {
        let answer = ask(&service, "ann").await;
        assert_eq!(answer.status(), StatusCode::OK);
        let names: Vec<&str> = decision(&answer)
            .would_refuse()
            .map(|status| status.name.as_str())
            .collect();
        assert_eq!(names, would_refuse);
        let fields = answer.headers().get("ratelimit").unwrap().to_str().unwrap();
        assert!(!fields.contains('~'), "{fields}");
    }
    assert_eq!(
        ask(&service, "ann").await.status(),
        StatusCode::TOO_MANY_REQUESTS
    );
}

/// A store that takes no more charges than every store has to.
#[derive(Clone)]
struct Narrow(MemoryStore);

impl Store for Narrow {
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Decision, std::io::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let Ok(decision) = self.0.apply(operation, charges).into_inner();
        std::future::ready(if charges.len() > Charge::MOST {
            Err(std::io::Error::other("too many"))
        } else {
            Ok(decision)
        })
    }
}

#[tokio::test]
async fn large_dry_run_leaves_limits_enforced() {
    let limits =
        || (0..17).map(|number| Limit::new(format!("limit-{number}"), Quota::per_minute(1)));
    let policy = || limits().fold(Policy::new(), Policy::limit);
    let store = Narrow(MemoryStore::with_clock(100, ManualClock::default()));
    let service =
        RateLimitLayer::new(store, policy().dry_run(policy()).unwrap()).layer(Inner::default());
    for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let request = Request::get("/").body(()).unwrap();
        assert_eq!(
            service.clone().oneshot(request).await.unwrap().status(),
            status
        );
    }
}

#[test]
fn dry_run_of_too_long_name_is_refused() {
    let candidate = Policy::new().limit(Limit::new("n".repeat(64), Quota::per_minute(1)));
    assert!(matches!(
        per_user(1).dry_run(candidate),
        Err(ConfigError::LimitName(_))
    ));
}

#[cfg(feature = "metrics")]
#[tokio::test]
async fn totals_include_decisions_of_split() {
    let chosen = |head: &tower_quota::RequestHead<'_>| head.headers()["user"] == "beta";
    let beta = per_user(1).limit(Limit::new("hour", Quota::per_hour(9)));
    let store = ScriptedStore::new();
    let layer = RateLimitLayer::new(store, per_user(5).split(chosen, beta));
    for user in ["ann", "beta", "beta"] {
        let request = Request::get("/").header("user", user).body(()).unwrap();
        layer
            .layer(Inner::default())
            .oneshot(request)
            .await
            .unwrap();
    }
    let handle = layer.handle();
    let totals: Vec<_> = handle
        .decision_totals()
        .iter()
        .map(|of| (of.limit.to_string(), of.sum(), of.limited))
        .collect();
    assert_eq!(
        totals,
        [(String::from("minute"), 3, 1), (String::from("hour"), 2, 0)]
    );
    assert_eq!(handle.store_latency().calls(), 3);
}

#[tokio::test]
async fn handler_settles_the_dry_run_too() {
    let tokens = |units| {
        Policy::new().limit(
            Limit::new("tokens", Quota::per_hour(units))
                .cost(10)
                .settle(by_handler()),
        )
    };
    let handler = service_fn(|request: Request<()>| {
        let reservation: &Reservation = request.extensions().get().unwrap();
        assert!(reservation.settle("tokens", 3));
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    let store = ScriptedStore::new();
    let layer = RateLimitLayer::new(store.clone(), tokens(100).dry_run(tokens(50)).unwrap());
    layer
        .layer(handler)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert_eq!(store.left("tokens", Quota::per_hour(100)), 97);
    assert_eq!(store.left("~tokens", Quota::per_hour(50)), 47);
}
