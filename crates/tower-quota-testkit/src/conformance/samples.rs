//! Provides the quotas and keys of the cases.

use std::fmt;
use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, LimitStatus, Name, Outcome, Quota};

use super::failure::{Verdict, expect};

/// Quotas of ten units in ten seconds, by every algorithm and by fixed windows with each offset.
/// Each has a name of its own as the key, so samples share no counter.
pub(super) const TEN_IN_TEN: &[(&str, Quota)] = {
    const TEN: Quota = Quota::new(10, Duration::from_secs(10));
    &[
        ("token bucket", TEN),
        ("gcra", TEN.gcra()),
        ("leaky bucket", TEN.leaky_bucket()),
        ("fixed window", TEN.fixed_window()),
        (
            "fixed window with an offset",
            TEN.fixed_window().offset(Duration::from_secs(3)),
        ),
        (
            "fixed window from the first request",
            TEN.fixed_window().from_first_request(),
        ),
        ("sliding window", TEN.sliding_window()),
        ("sliding log", TEN.sliding_log()),
    ]
};

/// A quota of ten units in ten seconds by one algorithm, with a key that no other sample has.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) quota: Quota,
    pub(super) key: Key<'static>,
}

impl Sample {
    pub(super) fn new(name: impl Into<String>, quota: Quota) -> Self {
        let name = name.into();
        let key = key(&name);
        Self { name, quota, key }
    }

    /// Returns a charge of the limit `ten` that never waits.
    pub(super) fn at_once(&self, cost: u64) -> Charge<'_> {
        at_once("ten", &self.quota, &self.key, cost)
    }

    /// Returns a charge of the limit `ten` that accepts any wait.
    pub(super) fn in_turn(&self, cost: u64) -> Charge<'_> {
        in_turn("ten", &self.quota, &self.key, cost)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

const CLIENT: Name = Name::new("client");

pub(super) fn key(name: &str) -> Key<'static> {
    Key::owned(CLIENT, name)
}

/// Returns a charge that never waits, so that a leaky bucket refuses when the other algorithms do.
pub(super) fn at_once<'a>(
    limit: &'static str,
    quota: &'a Quota,
    key: &'a Key<'a>,
    cost: u64,
) -> Charge<'a> {
    Charge::new(limit, quota, key)
        .cost(cost)
        .max_wait(Duration::ZERO)
}

/// Returns a charge that accepts any wait. Only a leaky bucket delays the charge.
pub(super) fn in_turn<'a>(
    limit: &'static str,
    quota: &'a Quota,
    key: &'a Key<'a>,
    cost: u64,
) -> Charge<'a> {
    Charge::new(limit, quota, key).cost(cost)
}

pub(super) fn only(decision: &Decision) -> Result<&LimitStatus, String> {
    match decision.statuses() {
        [status] => Ok(status),
        others => Err(format!(
            "there should be one status and there are {}",
            others.len()
        )),
    }
}

pub(super) fn retry_after(decision: &Decision) -> Result<Duration, String> {
    match decision.outcome() {
        Outcome::Refuse(retry) => Ok(retry),
        other => Err(format!(
            "the request should be refused for a while and is answered {other:?}"
        )),
    }
}

pub(super) fn expect_remaining(decision: &Decision, expected: &[u64]) -> Verdict {
    let statuses = decision.statuses().iter();
    let found: Vec<u64> = statuses.map(LimitStatus::remaining).collect();
    expect("remaining", found.as_slice(), expected)
}

pub(super) fn expect_binding(decision: &Decision, name: &'static str) -> Verdict {
    let binding = decision.tightest().map(|status| status.name);
    expect("binding", binding, Some(Name::new(name)))
}

pub(super) fn expect_allowed(decision: &Decision, expected: bool) -> Verdict {
    if decision.is_allowed() == expected {
        return Ok(());
    }
    let should = if expected { "admitted" } else { "refused" };
    let outcome = decision.outcome();
    Err(format!(
        "the request should be {should} and is answered {outcome:?}"
    ))
}
