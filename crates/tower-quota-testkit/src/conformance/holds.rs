//! Tests concurrency limits, which hold units until a release or an expiry.

use std::time::Duration;

use tower_quota_core::{Charge, ChargeMode, Decision, Key, Operation, Quota, Timestamp};

use super::Verdict;
use super::failure::expect;
use super::samples::{expect_remaining, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

const TTL: Duration = Duration::from_secs(10);
const TWO: Quota = Quota::concurrent(2).ttl(TTL);

pub(super) async fn refund_releases_a_hold(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    trial.step("two units are held by two requests of one instant");
    let first = hold(trial, &TWO, &ann).await?;
    let second = hold(trial, &TWO, &ann).await?;
    expect("different instants", first.at() < second.at(), true)?;
    let one = [Charge::new("holds", &TWO, &ann)];
    trial.refuses(&one).await?;
    trial.step("the first is released, and another request takes its unit");
    expect_remaining(&release(trial, &one, first.at()).await?, &[1])?;
    let third = hold(trial, &TWO, &ann).await?;
    trial.step("a second release, and one of an instant without a hold, free nothing");
    for taken_at in [first.at(), third.at() + TTL] {
        expect_remaining(&release(trial, &one, taken_at).await?, &[0])?;
    }
    trial.step("all are released");
    release(trial, &one, second.at()).await?;
    expect_remaining(&release(trial, &one, third.at()).await?, &[2])?;
    trial.step("the next hold has an instant of its own");
    let fourth = hold(trial, &TWO, &ann).await?;
    expect("a later instant", third.at() < fourth.at(), true)
}

pub(super) async fn hold_expires_unless_renewed(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let one = [Charge::new("holds", &TWO, &ann)];
    trial.step("two units are held, and one of them is renewed after 6 s");
    let renewed = hold(trial, &TWO, &ann).await?;
    trial.advance(MICROSECOND);
    let lost = hold(trial, &TWO, &ann).await?;
    trial.advance(Duration::from_secs(6));
    expect("held", renew(trial, &one, renewed.at()).await?, 1)?;
    trial.advance_to_just_before(Duration::from_secs(4));
    trial.refuses(&one).await?;
    trial.advance(MICROSECOND);
    trial.step("10 s after the charge, only the renewed one is held");
    expect("held", renew(trial, &one, lost.at()).await?, 0)?;
    trial.leaves(&[one[0].cost(0)], &[1]).await?;
    trial.step("a release after the expiry frees nothing");
    expect_remaining(&release(trial, &one, lost.at()).await?, &[1])?;
    trial.step("16 s after the charge, nothing is held");
    trial.advance(Duration::from_secs(6));
    trial.leaves(&[one[0].cost(0)], &[2]).await?;
    expect("held", renew(trial, &one, renewed.at()).await?, 0)?;
    trial.step(
        "a forced renewal takes the units of a lost hold again, and a second one takes no more",
    );
    let forced = [one[0].cost(2).in_mode(ChargeMode::Forced)];
    for _ in 0..2 {
        expect("held", renew(trial, &forced, renewed.at()).await?, 2)?;
        trial.leaves(&[one[0].cost(0)], &[0]).await?;
    }
    trial.step("a release of the same instant gives the units back");
    expect_remaining(&release(trial, &forced, renewed.at()).await?, &[2])
}

pub(super) async fn refused_hold_retries_within_a_second(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let one = Charge::new("holds", &TWO, &ann);
    trial.step("both units are held");
    let taken = trial.admits(&[one.cost(2)]).await?;
    let refused = trial.check(&[one]).await?;
    let second = Duration::from_secs(1);
    expect("retry", retry_after(&refused)?, second)?;
    let expiry = refused.at() + only(&refused)?.reset_after();
    expect("reset", expiry, taken.at() + TTL)?;
    trial.step("half a second before they expire");
    trial.advance(TTL - second / 2);
    let refused = trial.check(&[one]).await?;
    expect("retry", retry_after(&refused)?, second / 2)?;
    trial.advance(second / 2);
    trial.admits(&[one]).await?;
    trial.step("more units than the limit has");
    trial
        .gets(&[one.cost(3)], tower_quota_core::Outcome::Never)
        .await?;
    Ok(())
}

pub(super) async fn hold_is_taken_with_the_others(trial: &mut Trial) -> Verdict {
    let (ann, minute) = (key("ann"), Quota::per_minute(1));
    let both = [
        Charge::new("minute", &minute, &ann),
        Charge::new("holds", &TWO, &ann),
    ];
    trial.step("a request of a bucket and a hold");
    let taken = trial.check(&both).await?;
    expect_remaining(&taken, &[0, 1])?;
    trial.step("the bucket refuses, and nothing is held");
    trial.leaves(&both, &[0, 1]).await?;
    trial.step("only the hold is released");
    let released = release(trial, &both[1..], taken.at()).await?;
    expect_remaining(&released, &[2])?;
    let peeked = trial.apply(Operation::Peek, &both).await?;
    expect_remaining(&peeked, &[0, 2])?;
    trial.step("a reset frees all holds");
    hold(trial, &TWO, &ann).await?;
    let reset = trial.apply(Operation::Reset, &both).await?;
    expect_remaining(&reset, &[1, 2])
}

pub(super) async fn changed_hold_keeps_held_units(trial: &mut Trial) -> Verdict {
    let (ann, other) = (key("ann"), Quota::concurrent(3).ttl(2 * TTL));
    trial.step("two units are held, and the limit is raised to three");
    let first = hold(trial, &TWO, &ann).await?;
    hold(trial, &TWO, &ann).await?;
    hold(trial, &other, &ann).await?;
    trial.step("lowered again, it owes a unit, and a hold is released by the other version");
    let one = [Charge::new("holds", &TWO, &ann)];
    trial.refuses(&one).await?;
    let three = [Charge::new("holds", &other, &ann)];
    expect_remaining(&release(trial, &three, first.at()).await?, &[1])?;
    trial.step("each hold keeps its own expiry");
    trial.advance(TTL + MICROSECOND);
    trial.leaves(&[one[0].cost(0)], &[1]).await
}

async fn hold(trial: &mut Trial, quota: &Quota, key: &Key<'_>) -> Result<Decision, String> {
    trial.admits(&[Charge::new("holds", quota, key)]).await
}

async fn release(
    trial: &mut Trial,
    charges: &[Charge<'_>],
    taken_at: Timestamp,
) -> Result<Decision, String> {
    let operation = Operation::Refund { taken_at };
    trial.apply(operation, charges).await
}

/// Renews a hold. Returns the units still held.
async fn renew(
    trial: &mut Trial,
    charges: &[Charge<'_>],
    taken_at: Timestamp,
) -> Result<u64, String> {
    let operation = Operation::Renew { taken_at };
    let renewed = trial.apply(operation, charges).await?;
    Ok(only(&renewed)?.taken)
}
