//! Another policy that runs dry with the one in force.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{
    ConfigError, Decision, MemoryStore, Policy, Quota, RateLimitLayer, Store, key,
    store::{Charge, Operation},
};

use crate::fixture::{Answer, Inner, Limited, ScriptedStore, StoreControl};
use crate::shared::{answer_to, per_hour, per_minute, policy_of, stopped_store};

fn per_user(units: u64) -> Policy {
    policy_of(per_minute("minute", units).by(key::header("user")))
}

async fn ask(limited: &Limited, user: &str) -> Answer {
    limited.send(Request::get("/").header("user", user)).await
}

fn decision(answer: &Answer) -> &Decision {
    answer.extensions().get().unwrap()
}

#[tokio::test]
async fn dry_run_counts_and_refuses_nothing() {
    let candidate = per_user(2).choose(
        [per_minute("route", 3).by(key::header("user"))],
        |_, chosen| chosen.add(0, None),
    );
    let service = Limited::new(per_user(4).dry_run(candidate).unwrap());
    for would_refuse in [vec![], vec![], vec!["~minute"], vec!["~minute", "~route"]] {
        let answer = ask(&service, "ann").await;
        assert_eq!(answer.status(), 200);
        let names: Vec<&str> = decision(&answer)
            .would_refuse()
            .map(|status| status.name.as_str())
            .collect();
        assert_eq!(names, would_refuse);
        let fields = answer.headers().get("ratelimit").unwrap().to_str().unwrap();
        assert!(!fields.contains('~'), "{fields}");
    }
    assert_eq!(ask(&service, "ann").await.status(), 429);
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
    let limits = || (0..17).map(|number| per_minute(format!("limit-{number}"), 1));
    let policy = || limits().fold(Policy::new(), Policy::limit);
    let store = Narrow(stopped_store());
    let service =
        RateLimitLayer::new(store, policy().dry_run(policy()).unwrap()).layer(Inner::default());
    for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let request = Request::get("/").body(()).unwrap();
        assert_eq!(answer_to(&service, request).await.status(), status);
    }
}

#[test]
fn dry_run_of_too_long_name_is_refused() {
    let candidate = policy_of(per_minute("n".repeat(64), 1));
    assert!(matches!(
        per_user(1).dry_run(candidate),
        Err(ConfigError::LimitName(_))
    ));
}

#[tokio::test]
async fn handler_settles_the_dry_run_too() {
    let tokens = |units| policy_of(per_hour("tokens", units).cost(10).settle(by_handler()));
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
