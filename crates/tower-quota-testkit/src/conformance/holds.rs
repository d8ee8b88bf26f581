//! Concurrency limits: units are held until they are released or expire.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Operation, Quota, Store, Timestamp};

use super::Outcome;
use super::failure::{Failure, expect};
use super::samples::{expect_allowed, expect_remaining, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

const TTL: Duration = Duration::from_secs(10);
const TWO: Quota = Quota::concurrent(2).ttl(TTL);

pub(super) async fn refund_releases_a_hold<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let step = "two units are held by two requests of one instant";
    let first = hold(trial, step, &TWO, &ann).await?;
    let second = hold(trial, step, &TWO, &ann).await?;
    expect(step, "different instants", first.at() < second.at(), true)?;
    let one = [Charge::new("holds", &TWO, &ann)];
    expect_allowed(step, &trial.check(step, &one).await?, false)?;
    let step = "the first is released, and another request takes its unit";
    expect_remaining(step, &release(trial, step, &one, first.at()).await?, &[1])?;
    let third = hold(trial, step, &TWO, &ann).await?;
    let step = "a second release, and one of an instant without a hold, free nothing";
    for taken_at in [first.at(), third.at() + TTL] {
        expect_remaining(step, &release(trial, step, &one, taken_at).await?, &[0])?;
    }
    let step = "all are released";
    release(trial, step, &one, second.at()).await?;
    expect_remaining(step, &release(trial, step, &one, third.at()).await?, &[2])?;
    let step = "the next hold has an instant of its own";
    let fourth = hold(trial, step, &TWO, &ann).await?;
    expect(step, "a later instant", third.at() < fourth.at(), true)
}

pub(super) async fn hold_expires_unless_renewed<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let one = [Charge::new("holds", &TWO, &ann)];
    let step = "two units are held, and one of them is renewed after 6 s";
    let renewed = hold(trial, step, &TWO, &ann).await?;
    trial.advance(MICROSECOND);
    let lost = hold(trial, step, &TWO, &ann).await?;
    trial.advance(Duration::from_secs(6));
    expect(
        step,
        "held",
        renew(trial, step, &one, renewed.at()).await?,
        1,
    )?;
    trial.advance_to_just_before(Duration::from_secs(4));
    expect_allowed(step, &trial.check(step, &one).await?, false)?;
    trial.advance(MICROSECOND);
    let step = "10 s after the charge, only the renewed one is held";
    expect(step, "held", renew(trial, step, &one, lost.at()).await?, 0)?;
    expect_remaining(step, &trial.check(step, &[one[0].cost(0)]).await?, &[1])?;
    let step = "a release after the expiry frees nothing";
    expect_remaining(step, &release(trial, step, &one, lost.at()).await?, &[1])?;
    let step = "16 s after the charge, nothing is held";
    trial.advance(Duration::from_secs(6));
    expect_remaining(step, &trial.check(step, &[one[0].cost(0)]).await?, &[2])?;
    expect(
        step,
        "held",
        renew(trial, step, &one, renewed.at()).await?,
        0,
    )
}

pub(super) async fn refused_hold_retries_within_a_second<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    let ann = key("ann");
    let one = Charge::new("holds", &TWO, &ann);
    let step = "both units are held";
    let taken = trial.check(step, &[one.cost(2)]).await?;
    expect_allowed(step, &taken, true)?;
    let refused = trial.check(step, &[one]).await?;
    let second = Duration::from_secs(1);
    expect(step, "retry", retry_after(step, &refused)?, second)?;
    let expiry = refused.at() + only(step, &refused)?.reset_after();
    expect(step, "reset", expiry, taken.at() + TTL)?;
    let step = "half a second before they expire";
    trial.advance(TTL - second / 2);
    let refused = trial.check(step, &[one]).await?;
    expect(step, "retry", retry_after(step, &refused)?, second / 2)?;
    trial.advance(second / 2);
    expect_allowed(step, &trial.check(step, &[one]).await?, true)?;
    let step = "more units than the limit has";
    let never = trial.check(step, &[one.cost(3)]).await?;
    expect(
        step,
        "outcome",
        never.outcome(),
        tower_quota_core::Outcome::Never,
    )
}

pub(super) async fn hold_is_taken_with_the_others<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (ann, minute) = (key("ann"), Quota::per_minute(1));
    let both = [
        Charge::new("minute", &minute, &ann),
        Charge::new("holds", &TWO, &ann),
    ];
    let step = "a request of a bucket and a hold";
    let taken = trial.check(step, &both).await?;
    expect_remaining(step, &taken, &[0, 1])?;
    let step = "the bucket refuses, and nothing is held";
    expect_remaining(step, &trial.check(step, &both).await?, &[0, 1])?;
    let step = "only the hold is released";
    let released = release(trial, step, &both[1..], taken.at()).await?;
    expect_remaining(step, &released, &[2])?;
    let peeked = trial.apply(step, Operation::Peek, &both).await?;
    expect_remaining(step, &peeked, &[0, 2])?;
    let step = "a reset frees all holds";
    hold(trial, step, &TWO, &ann).await?;
    let reset = trial.apply(step, Operation::Reset, &both).await?;
    expect_remaining(step, &reset, &[1, 2])
}

pub(super) async fn changed_hold_keeps_held_units<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (ann, other) = (key("ann"), Quota::concurrent(3).ttl(2 * TTL));
    let step = "two units are held, and the limit is raised to three";
    let first = hold(trial, step, &TWO, &ann).await?;
    hold(trial, step, &TWO, &ann).await?;
    hold(trial, step, &other, &ann).await?;
    let step = "lowered again, it owes a unit, and a hold is released by the other version";
    let one = [Charge::new("holds", &TWO, &ann)];
    expect_allowed(step, &trial.check(step, &one).await?, false)?;
    let three = [Charge::new("holds", &other, &ann)];
    expect_remaining(step, &release(trial, step, &three, first.at()).await?, &[1])?;
    let step = "each hold keeps its own expiry";
    trial.advance(TTL + MICROSECOND);
    expect_remaining(step, &trial.check(step, &[one[0].cost(0)]).await?, &[1])
}

/// Takes one unit, which must fit.
async fn hold<S: Store>(
    trial: &mut Trial<S>,
    step: &str,
    quota: &Quota,
    key: &Key<'_>,
) -> Result<Decision, Failure> {
    let decision = trial
        .check(step, &[Charge::new("holds", quota, key)])
        .await?;
    expect_allowed(step, &decision, true)?;
    Ok(decision)
}

async fn release<S: Store>(
    trial: &mut Trial<S>,
    step: &str,
    charges: &[Charge<'_>],
    taken_at: Timestamp,
) -> Result<Decision, Failure> {
    let operation = Operation::Refund { taken_at };
    trial.apply(step, operation, charges).await
}

/// Returns the units that are still held.
async fn renew<S: Store>(
    trial: &mut Trial<S>,
    step: &str,
    charges: &[Charge<'_>],
    taken_at: Timestamp,
) -> Result<u64, Failure> {
    let operation = Operation::Renew { taken_at };
    let renewed = trial.apply(step, operation, charges).await?;
    Ok(only(step, &renewed)?.taken)
}
