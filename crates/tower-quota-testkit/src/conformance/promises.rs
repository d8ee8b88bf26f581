//! The promises of a decision hold to the microsecond.

use std::time::Duration;

use tower_quota_core::{Quota, Store};

use super::Outcome;
use super::failure::{Failure, expect};
use super::samples::{at_once, expect_allowed, in_turn, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

/// Takes all ten units in two parts, four seconds apart, and leaves the clock 1.5 s later.
async fn spend<S: Store>(trial: &mut Trial<S>, name: &str, quota: &Quota) -> Result<(), Failure> {
    let (start, spender) = (trial.now(), key(name));
    for (after, cost) in [(0, 4), (4_000, 6), (5_500, 10)] {
        trial.set(start + Duration::from_millis(after));
        let step = format!("{name}: {cost} units after {after} ms");
        // A bucket has regained units before the last step; these are taken too.
        let peek = trial
            .check(&step, &[at_once("ten", quota, &spender, 0)])
            .await?;
        let cost = cost.min(only(&step, &peek)?.remaining());
        let decision = trial
            .check(&step, &[in_turn("ten", quota, &spender, cost)])
            .await?;
        expect_allowed(&step, &decision, true)?;
    }
    Ok(())
}

pub(super) async fn retry_after_is_exact<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        for cost in [1, 3, 7, 10] {
            let name = format!("{name}, cost {cost}");
            spend(trial, &name, &quota).await?;
            let spender = key(&name);
            let charge = [at_once("ten", &quota, &spender, cost)];

            let step = format!("{name}: refused");
            let retry = retry_after(&step, &trial.check(&step, &charge).await?)?;
            trial.advance_to_just_before(retry);
            let step = format!("{name}: refused a microsecond before {retry:?} have passed");
            let decision = trial.check(&step, &charge).await?;
            expect_allowed(&step, &decision, false)?;
            expect(
                &step,
                "retry after",
                decision.retry_after(),
                Some(MICROSECOND),
            )?;
            trial.advance(MICROSECOND);
            let step = format!("{name}: admitted after {retry:?}");
            expect_allowed(&step, &trial.check(&step, &charge).await?, true)?;
        }
    }
    Ok(())
}

pub(super) async fn reset_after_is_exact<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        spend(trial, name, &quota).await?;
        let spender = key(name);
        let peek = [at_once("ten", &quota, &spender, 0)];
        let step = format!("{name}: spent");
        let reset = only(&step, &trial.check(&step, &peek).await?)?.reset_after();
        trial.advance_to_just_before(reset);
        let step = format!("{name}: not full a microsecond before {reset:?} have passed");
        let left = only(&step, &trial.check(&step, &peek).await?)?.remaining();
        expect(&step, "full", left == 10, false)?;
        trial.advance(MICROSECOND);
        let step = format!("{name}: full after {reset:?}");
        let decision = trial.check(&step, &peek).await?;
        let status = only(&step, &decision)?;
        expect(&step, "remaining", status.remaining(), 10)?;
        expect(&step, "reset after", status.reset_after(), Duration::ZERO)?;
    }
    Ok(())
}

pub(super) async fn remaining_is_exact<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        spend(trial, name, &quota).await?;
        let spender = key(name);
        for pause in [700, 2_400, 1_300, 5_650] {
            trial.advance(Duration::from_millis(pause));
            let step = format!("{name}: {pause} ms later");
            let left = only(
                &step,
                &trial
                    .check(&step, &[at_once("ten", &quota, &spender, 0)])
                    .await?,
            )?
            .remaining();
            let step = format!("{name}: {pause} ms later, one more than the {left} left");
            let decision = trial
                .check(&step, &[in_turn("ten", &quota, &spender, left + 1)])
                .await?;
            expect_allowed(&step, &decision, false)?;
            expect(
                &step,
                "remaining",
                only(&step, &decision)?.remaining(),
                left,
            )?;
            let step = format!("{name}: {pause} ms later, the {left} left");
            let decision = trial
                .check(&step, &[in_turn("ten", &quota, &spender, left)])
                .await?;
            expect_allowed(&step, &decision, true)?;
            expect(&step, "remaining", only(&step, &decision)?.remaining(), 0)?;
        }
    }
    Ok(())
}
