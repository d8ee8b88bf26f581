//! The quotas and keys that the cases use.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, LimitStatus, Name, Outcome, Quota};

use super::failure::{Failure, expect};

/// Ten units in ten seconds, by every algorithm and by fixed windows with each offset. The name is the key's and the
/// limit's, so samples share no counter.
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

const CLIENT: Name = Name::new("client");

/// Returns a key of the conformance suite.
pub(super) fn key(name: &str) -> Key<'static> {
    Key::owned(CLIENT, name)
}

/// Returns a charge that never waits, so that a leaky bucket refuses where the others do.
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

/// Returns a charge that accepts any wait; only a leaky bucket makes it wait.
pub(super) fn in_turn<'a>(
    limit: &'static str,
    quota: &'a Quota,
    key: &'a Key<'a>,
    cost: u64,
) -> Charge<'a> {
    Charge::new(limit, quota, key).cost(cost)
}

/// Returns the only status of a request with one limit.
pub(super) fn only<'a>(step: &str, decision: &'a Decision) -> Result<&'a LimitStatus, Failure> {
    match decision.statuses() {
        [status] => Ok(status),
        others => Err(Failure::new(
            step,
            format!("there should be one status and there are {}", others.len()),
        )),
    }
}

/// Returns the wait after which a refused request is promised to be admitted.
pub(super) fn retry_after(step: &str, decision: &Decision) -> Result<Duration, Failure> {
    match decision.outcome() {
        Outcome::Refuse(retry) => Ok(retry),
        other => Err(Failure::new(
            step,
            format!("the request should be refused for a while and is answered {other:?}"),
        )),
    }
}

/// Fails the step unless each limit has this many units left, in the order of the charges.
pub(super) fn expect_remaining(
    step: &str,
    decision: &Decision,
    expected: &[u64],
) -> super::Outcome {
    let found: Vec<u64> = decision
        .statuses()
        .iter()
        .map(|status| status.remaining())
        .collect();
    expect(step, "remaining", found.as_slice(), expected)
}

/// Fails the step unless the request was admitted, or refused, as expected.
pub(super) fn expect_allowed(step: &str, decision: &Decision, expected: bool) -> super::Outcome {
    if decision.is_allowed() == expected {
        return Ok(());
    }
    let should = if expected { "admitted" } else { "refused" };
    Err(Failure::new(
        step,
        format!(
            "the request should be {should} and is answered {:?}",
            decision.outcome()
        ),
    ))
}
