//! Mistakes in a policy are found when it is built.

use std::time::Duration;

use tollgate::{ConfigError, Limit, Name, Policy, Quota, key};

fn limit(name: impl Into<Name>) -> Limit {
    Limit::new(name, Quota::per_minute(10))
}

#[test]
fn a_name_is_given_once() {
    let twice = Policy::new().limit(limit("a")).try_limit(limit(String::from("a")));
    assert_eq!(twice.unwrap_err(), ConfigError::DuplicateLimit(Name::new("a")));
}

#[test]
fn names_that_share_a_number_are_told() {
    // A pair of texts whose 32-bit FNV-1a agrees.
    let (one, other) = (Name::new("costarring"), Name::new("liquid"));
    assert_eq!(one.id(), other.id());
    let colliding = Policy::new().limit(limit(one)).try_limit(limit(other));
    assert_eq!(colliding.unwrap_err(), ConfigError::CollidingNames(one, other));

    let scope = |name| key::from_fn(name, |_| Some("x"));
    let colliding = Policy::new().limit(limit("a").by(scope(one))).try_limit(limit("b").by(scope(other)));
    assert_eq!(colliding.unwrap_err(), ConfigError::CollidingNames(one, other));
}

#[test]
fn a_name_fits_a_header() {
    for name in ["", "naïve", "line\nbreak", "\u{7f}"] {
        assert_eq!(Policy::new().try_limit(limit(name)).unwrap_err(), ConfigError::LimitName(Name::new(name)));
    }
    let long = "x".repeat(65);
    assert!(matches!(Policy::new().try_limit(limit(long)), Err(ConfigError::LimitName(_))));
    assert!(Policy::new().try_limit(limit("x".repeat(64))).is_ok());
    assert!(Policy::new().try_limit(limit(" ~\"\\")).is_ok());
}

#[test]
fn a_constant_cost_fits_its_quota() {
    let name = Name::new("dear");
    let error = Policy::new().try_limit(limit(name).cost(11)).unwrap_err();
    assert_eq!(error, ConfigError::CostAboveCapacity { limit: name, cost: 11, capacity: 10 });
    assert!(Policy::new().try_limit(limit(name).cost(10)).is_ok());
}

#[test]
fn every_instance_has_a_share_of_every_limit() {
    let yearly = || Limit::new("y", Quota::new(1, Duration::from_secs(300 * 86_400)));
    let error = ConfigError::ShareTooSmall { units: 1, period: Duration::from_secs(300 * 86_400), instances: 2 };
    assert_eq!(Policy::new().limit(yearly()).try_instances(2).unwrap_err(), error);
    assert_eq!(Policy::new().instances(2).try_limit(yearly()).unwrap_err(), error);
    assert_eq!(Policy::new().try_instances(0).unwrap_err(), ConfigError::ZeroInstances);
    assert!(Policy::new().limit(limit("a")).try_instances(1_000).is_ok());
}

#[test]
#[should_panic(expected = "two limits of one policy are named \"a\": give each a name of its own")]
fn a_policy_written_in_code_panics_with_the_reason() {
    let _ = Policy::new().limit(limit("a")).limit(limit("a"));
}
