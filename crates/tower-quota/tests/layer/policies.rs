//! Errors in a policy are found when it is built.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::key::{ClientIp, KeyExtractor, Proxies, Source, from_fn};
use tower_quota::{
    Check, ConfigError, Key, Limit, Limiter, MemoryStore, Name, OnStoreFailure, Policy, Quota,
    RateLimitLayer, Reason, RequestHead, explain::Explained, key, store::Charge, when,
};

use crate::fixture::{Inner, Limited, ScriptedStore};
use crate::shared::{per_minute, policy_of, secs};

fn limit(name: impl Into<Name>) -> Limit {
    per_minute(name, 10)
}

/// An extractor that counts all clients together, in a given scope.
struct Scoped(Name);

impl KeyExtractor for Scoped {
    fn scope(&self) -> Name {
        self.0
    }

    fn extract<'r>(&self, _: &RequestHead<'r>) -> Option<Key<'r>> {
        Some(Key::new(self.0, b"x"))
    }
}

#[test]
fn duplicate_limit_name_is_an_error() {
    let twice = policy_of(limit("a")).try_limit(limit(String::from("a")));
    assert_eq!(
        twice.unwrap_err(),
        ConfigError::DuplicateLimit(Name::new("a"))
    );
}

#[test]
fn colliding_limit_names_are_reported() {
    // A pair of texts with the same 32-bit FNV-1a hash.
    let (one, other) = (Name::new("costarring"), Name::new("liquid"));
    assert_eq!(one.id(), other.id());
    let colliding = policy_of(limit(one)).try_limit(limit(other));
    assert_eq!(
        colliding.unwrap_err(),
        ConfigError::CollidingNames(one, other)
    );

    let colliding = policy_of(limit("a").by(Scoped(one))).try_limit(limit("b").by(Scoped(other)));
    assert_eq!(
        colliding.unwrap_err(),
        ConfigError::CollidingNames(one, other)
    );
}

#[test]
fn invalid_limit_name_is_an_error() {
    for name in ["", "naïve", "line\nbreak", "\u{7f}"] {
        assert_eq!(
            Policy::new().try_limit(limit(name)).unwrap_err(),
            ConfigError::LimitName(Name::new(name))
        );
    }
    let long = "x".repeat(65);
    assert!(matches!(
        Policy::new().try_limit(limit(long)),
        Err(ConfigError::LimitName(_))
    ));
    assert!(Policy::new().try_limit(limit("x".repeat(64))).is_ok());
    assert!(Policy::new().try_limit(limit(" ~\"\\")).is_ok());
}

#[test]
fn wait_for_a_window_is_refused() {
    let waiting = |quota: Quota| Limit::new("uploads", quota).max_wait(secs(5));
    let quota = || Quota::per_minute(10);
    for window in [
        quota().fixed_window(),
        quota().sliding_window(),
        quota().sliding_log(),
    ] {
        let error = Policy::new().try_limit(waiting(window)).unwrap_err();
        assert_eq!(
            error,
            ConfigError::WaitOnWindow {
                limit: Name::new("uploads"),
                algorithm: window.algorithm()
            }
        );
        assert!(
            error.to_string().contains("leave `max_wait` out"),
            "{error}"
        );
        assert!(
            Policy::new()
                .try_limit(waiting(window).max_wait(Duration::ZERO))
                .is_ok()
        );
        assert!(
            Policy::new()
                .try_limit(waiting(window).quota_with(|_| None))
                .is_ok(),
            "a request may choose a bucket"
        );
    }
    for bucket in [quota(), quota().leaky_bucket()] {
        assert!(Policy::new().try_limit(waiting(bucket)).is_ok());
    }
}

#[test]
fn constant_cost_above_capacity_is_an_error() {
    let name = Name::new("dear");
    let error = Policy::new().try_limit(limit(name).cost(11)).unwrap_err();
    assert_eq!(
        error,
        ConfigError::CostAboveCapacity {
            limit: name,
            cost: 11,
            capacity: 10
        }
    );
    assert!(Policy::new().try_limit(limit(name).cost(10)).is_ok());
}

#[test]
fn instance_has_share_of_each_limit() {
    let yearly = || Limit::new("y", Quota::new(1, secs(300 * 86_400)));
    let error = ConfigError::ShareTooSmall {
        units: 1,
        period: secs(300 * 86_400),
        instances: 2,
    };
    assert_eq!(policy_of(yearly()).try_instances(2).unwrap_err(), error);
    assert_eq!(
        Policy::new().instances(2).try_limit(yearly()).unwrap_err(),
        error
    );
    assert_eq!(
        Policy::new().try_instances(0).unwrap_err(),
        ConfigError::ZeroInstances
    );
    assert!(policy_of(limit("a")).try_instances(1_000).is_ok());
}

#[test]
#[should_panic(expected = "two limits are named \"a\": give each a name of its own")]
fn invalid_policy_in_code_panics_with_reason() {
    let _ = policy_of(limit("a")).limit(limit("a"));
}

/// Returns the result of adding two limits that count by these extractors.
fn second(one: impl KeyExtractor, other: impl KeyExtractor) -> Result<Policy, ConfigError> {
    policy_of(limit("a").by(one)).try_limit(limit("b").by(other))
}

#[tokio::test]
async fn closure_may_have_built_in_name() {
    let by_path = || from_fn("everyone", |head| Some(head.uri().path().to_owned()));
    let each = || per_minute("each", 1).by(by_path());
    let all = || per_minute("all", 2);
    for policy in [
        policy_of(each()).limit(all()),
        policy_of(all()).limit(each()),
    ] {
        let limited = Limited::new(policy);
        for (path, status) in [("/a", 200), ("/a", 429), ("/b", 200), ("/c", 429)] {
            assert_eq!(
                limited.send(Request::get(path)).await.status(),
                status,
                "{path}"
            );
        }
    }
    assert!(second(key::method(), from_fn("method", |_| Some("x"))).is_ok());
    assert!(second(key::header("x"), from_fn("header x", |_| Some("x"))).is_ok());
}

#[test]
fn different_closures_need_different_names() {
    let error = second(
        from_fn("tenant", |_| Some("x")),
        from_fn("tenant", |_| Some("y")),
    )
    .unwrap_err();
    assert_eq!(error, ConfigError::SharedScope(Name::new("fn tenant")));
    assert_eq!(
        error.to_string(),
        "different extractors of one policy make keys of one scope, \"fn tenant\": give each a scope of its own, or \
         count by one of them"
    );
}

#[test]
fn extractors_of_different_types_need_different_scopes() {
    let shared = |scope| Err(ConfigError::SharedScope(Name::new(scope)));
    let error_of = |outcome: Result<Policy, ConfigError>| outcome.map(|_| ());
    assert_eq!(
        error_of(second(key::everyone(), Scoped(Name::new("everyone")))),
        shared("everyone")
    );
    assert_eq!(
        error_of(second(Scoped(Name::new("method")), key::method())),
        shared("method")
    );
    // Extractors in boxes and combinations are compared too.
    let boxed = |extractor| -> Box<dyn KeyExtractor> { extractor };
    let method = || boxed(Box::new(key::method()));
    assert_eq!(
        error_of(second(
            method(),
            boxed(Box::new(Scoped(Name::new("method"))))
        )),
        shared("method")
    );
    let pair = |extractor| key::all([method(), boxed(extractor)]);
    let one = pair(Box::new(from_fn("x", |_| Some("x"))));
    let other = pair(Box::new(from_fn("x", |_| Some("y"))));
    assert_eq!(error_of(second(one, other)), shared("(method + fn x)"));
}

#[test]
fn header_with_two_proxy_lists_is_refused() {
    let behind = |proxies| key::client_ip().behind(proxies, Source::XForwardedFor);
    let (ours, theirs) = (
        || behind(Proxies::networks(["10.0.0.0/8"])),
        || behind(Proxies::networks(["192.0.2.0/24"])),
    );
    let shared = ConfigError::SharedScope(ours().scope());
    assert_eq!(second(ours(), theirs()).unwrap_err(), shared);
    assert_eq!(
        second(behind(Proxies::hops(1)), behind(Proxies::hops(2))).unwrap_err(),
        shared
    );
    let routed = |client: ClientIp| key::all((client, key::method()));
    assert!(matches!(
        second(routed(ours()), routed(theirs())),
        Err(ConfigError::SharedScope(_))
    ));
    assert!(second(ours(), ours()).is_ok());
    assert!(second(routed(ours()), routed(ours())).is_ok());
    assert!(second(ours(), ours().prefix_v6(48)).is_ok());
    assert!(second(ours(), key::client_ip()).is_ok());
}

#[cfg(feature = "jwt-rust-crypto")]
#[test]
fn claim_with_two_verifications_is_refused() {
    let key = |secret: &[u8]| key::JwtKey::hmac(secret).unwrap();
    let by = |key| key::jwt_claim("sub", key);
    let shared = ConfigError::SharedScope(by(key(b"one")).scope());
    assert_eq!(
        second(by(key(b"one")), by(key(b"two"))).unwrap_err(),
        shared
    );
    assert_eq!(
        second(by(key(b"one")), by(key(b"one").issuer("x"))).unwrap_err(),
        shared
    );
    assert_eq!(
        second(by(key(b"one")), by(key(b"one").audience("x"))).unwrap_err(),
        shared
    );
    assert_eq!(
        second(by(key(b"one").issuer("x")), by(key(b"one").audience("x"))).unwrap_err(),
        shared
    );
    assert_eq!(
        second(by(key(b"one")), by(key(b"one")).or_key(key(b"two"))).unwrap_err(),
        shared
    );
    let one = || by(key(b"one").issuer("x").audience("y")).or_key(key(b"two"));
    assert!(second(one(), one()).is_ok());
    assert!(second(one(), key::unverified_jwt_claim("sub")).is_ok());
}

#[test]
fn one_extractor_may_count_for_several_limits() {
    fn tenant() -> impl KeyExtractor + Clone {
        from_fn("tenant", |head| {
            head.headers()
                .get("x-tenant")
                .map(|tenant| tenant.as_bytes().to_vec())
        })
    }

    assert!(second(tenant(), tenant()).is_ok());
    let shared: Arc<dyn KeyExtractor> = Arc::new(tenant());
    assert!(second(Arc::clone(&shared), Arc::clone(&shared)).is_ok());
    assert!(second(Arc::clone(&shared), tenant()).is_ok());
    let boxed = || -> Box<dyn KeyExtractor> { Box::new(key::method()) };
    assert!(second(boxed(), key::method()).is_ok());
    let pair = || key::all((key::method(), tenant()));
    assert!(second(pair(), key::all((boxed(), Arc::clone(&shared)))).is_ok());
    assert!(second(pair(), pair()).is_ok());
}

#[test]
fn too_many_limits_are_an_error() {
    let numbered = |count| (0..count).map(|number| limit(format!("limit-{number}")));
    let policy = numbered(Charge::MOST).fold(Policy::new(), Policy::limit);
    let conditional = limit("conditional").when(when::path("/"));
    let policy = policy.limit(conditional).limit(limit("shadow").shadow());
    let last = Name::new("last");
    let error = policy.try_limit(limit(last)).unwrap_err();
    assert_eq!(error, ConfigError::TooManyLimits(last));

    let limiter = Limiter::new(MemoryStore::new(), "limit-0", Quota::per_minute(10));
    let limiter = (1..Charge::MOST).fold(limiter, |limiter, number| {
        limiter.limit(format!("limit-{number}"), Quota::per_minute(10))
    });
    let error = limiter.try_limit(last, Quota::per_minute(10)).unwrap_err();
    assert_eq!(error, ConfigError::TooManyLimits(last));
}

/// A client brings so many limits about that no store decides them. The policy is wrong, so the answer is no outage's.
#[tokio::test]
async fn request_over_limit_count_is_server_error() {
    for on_store_failure in [
        OnStoreFailure::Allow,
        OnStoreFailure::Refuse,
        OnStoreFailure::Local,
    ] {
        let policy = (0..=Charge::MOST).fold(Policy::new(), |policy, number| {
            let limit = limit(format!("limit-{number}"));
            policy.limit(limit.when(move |head: &RequestHead<'_>| {
                let sent = head.headers().get("x-limits");
                let sent = sent.and_then(|sent| sent.to_str().ok()?.parse().ok());
                sent.is_some_and(|sent: usize| number < sent)
            }))
        });
        let store = ScriptedStore::new();
        let layer = RateLimitLayer::new(store.clone(), policy.on_store_failure(on_store_failure));
        let handle = layer.handle();
        let service = layer.layer(Inner::default());
        let ask = |limits: usize| {
            let request = Request::get("/").header("x-limits", limits);
            service.clone().oneshot(request.body(()).unwrap())
        };
        assert_eq!(ask(Charge::MOST).await.unwrap().status(), 200);
        let status = ask(Charge::MOST + 1).await.unwrap().status();
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(store.operations().len(), 1);
        assert_eq!(handle.mistakes().count(Check::TooManyLimits), 1);
        let request = Request::get("/").header("x-limits", Charge::MOST + 1);
        let explained = handle.explain(&RequestHead::of(&request.body(()).unwrap()));
        assert!(matches!(
            explained,
            Explained::Refused(Reason::TooManyLimits)
        ));
    }
}
