//! Requests that cost nothing, too much, or more than is left.

use tower_quota_core::{Outcome as Answer, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, only};
use super::trial::Trial;

pub(super) async fn cost_zero_charges_nothing<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let peek = [at_once("ten", &quota, &ann, 0)];
        let step = format!("{name}: a peek at a new key");
        let decision = trial.check(&step, &peek).await?;
        expect(&step, "outcome", decision.outcome(), Answer::Allow)?;
        expect_remaining(&step, &decision, &[10])?;
        for cost in [7, 3] {
            let step = format!("{name}: {cost} units");
            expect_allowed(
                &step,
                &trial
                    .check(&step, &[in_turn("ten", &quota, &ann, cost)])
                    .await?,
                true,
            )?;
            let step = format!("{name}: a peek after {cost} units, twice the same");
            let before = trial.check(&step, &peek).await?;
            expect(&step, "outcome", before.outcome(), Answer::Allow)?;
            expect(
                &step,
                "the second peek",
                &trial.check(&step, &peek).await?,
                &before,
            )?;
        }
    }
    Ok(())
}

pub(super) async fn cost_above_capacity_never_fits<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        for (taken, left) in [(0, 10), (4, 6)] {
            let step = format!("{name}: {taken} units");
            trial
                .check(&step, &[in_turn("ten", &quota, &ann, taken)])
                .await?;
            for cost in [11, 1_000, u64::MAX] {
                let step = format!("{name}: {cost} units when {left} are left");
                let decision = trial
                    .check(&step, &[in_turn("ten", &quota, &ann, cost)])
                    .await?;
                expect(&step, "outcome", decision.outcome(), Answer::Never)?;
                expect(&step, "retry after", decision.retry_after(), None)?;
                expect_remaining(&step, &decision, &[left])?;
            }
            let step = format!("{name}: nothing was charged");
            expect_remaining(
                &step,
                &trial
                    .check(&step, &[at_once("ten", &quota, &ann, 0)])
                    .await?,
                &[left],
            )?;
        }
    }
    Ok(())
}

pub(super) async fn refusal_reports_what_is_left<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let step = format!("{name}: 7 units");
        let taken = trial
            .check(&step, &[at_once("ten", &quota, &ann, 7)])
            .await?;
        for cost in [4, 10] {
            let step = format!("{name}: {cost} units when 3 are left");
            let decision = trial
                .check(&step, &[at_once("ten", &quota, &ann, cost)])
                .await?;
            expect_allowed(&step, &decision, false)?;
            let (status, before) = (only(&step, &decision)?, only(&step, &taken)?);
            expect(&step, "remaining", status.remaining(), 3)?;
            expect(
                &step,
                "reset after",
                status.reset_after(),
                before.reset_after(),
            )?;
            expect(&step, "limit", status.limit, 10)?;
        }
    }
    Ok(())
}
