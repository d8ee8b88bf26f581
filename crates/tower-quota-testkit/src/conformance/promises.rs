//! The promises of a decision hold to the microsecond.

use std::time::Duration;

use tower_quota_core::Quota;

use super::Verdict;
use super::failure::expect;
use super::samples::{at_once, in_turn, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

/// Takes all ten units in two parts, four seconds apart, and leaves the clock 1.5 s later.
async fn spend(trial: &mut Trial, name: &str, quota: &Quota) -> Result<(), String> {
    let (start, spender) = (trial.now(), key(name));
    for (after, cost) in [(0, 4), (4_000, 6), (5_500, 10)] {
        trial.set(start + Duration::from_millis(after));
        trial.step(format!("{name}: {cost} units after {after} ms"));
        // A bucket has regained units before the last step; these are taken too.
        let peek = trial.check(&[at_once("ten", quota, &spender, 0)]).await?;
        let cost = cost.min(only(&peek)?.remaining());
        trial
            .admits(&[in_turn("ten", quota, &spender, cost)])
            .await?;
    }
    Ok(())
}

pub(super) async fn retry_after_is_exact(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        for cost in [1, 3, 7, 10] {
            let name = format!("{name}, cost {cost}");
            spend(trial, &name, &quota).await?;
            let spender = key(&name);
            let charge = [at_once("ten", &quota, &spender, cost)];

            trial.step(format!("{name}: refused"));
            let retry = retry_after(&trial.check(&charge).await?)?;
            trial.advance_to_just_before(retry);
            trial.step(format!(
                "{name}: refused a microsecond before {retry:?} have passed"
            ));
            let decision = trial.refuses(&charge).await?;
            expect("retry after", decision.retry_after(), Some(MICROSECOND))?;
            trial.advance(MICROSECOND);
            trial.step(format!("{name}: admitted after {retry:?}"));
            trial.admits(&charge).await?;
        }
    }
    Ok(())
}

pub(super) async fn reset_after_is_exact(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        spend(trial, name, &quota).await?;
        let spender = key(name);
        let peek = [at_once("ten", &quota, &spender, 0)];
        trial.step(format!("{name}: spent"));
        let reset = only(&trial.check(&peek).await?)?.reset_after();
        trial.advance_to_just_before(reset);
        trial.step(format!(
            "{name}: not full a microsecond before {reset:?} have passed"
        ));
        let left = only(&trial.check(&peek).await?)?.remaining();
        expect("full", left == 10, false)?;
        trial.advance(MICROSECOND);
        trial.step(format!("{name}: full after {reset:?}"));
        let decision = trial.check(&peek).await?;
        let status = only(&decision)?;
        expect("remaining", status.remaining(), 10)?;
        expect("reset after", status.reset_after(), Duration::ZERO)?;
    }
    Ok(())
}

pub(super) async fn remaining_is_exact(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        spend(trial, name, &quota).await?;
        let spender = key(name);
        for pause in [700, 2_400, 1_300, 5_650] {
            trial.advance(Duration::from_millis(pause));
            trial.step(format!("{name}: {pause} ms later"));
            let left =
                only(&trial.check(&[at_once("ten", &quota, &spender, 0)]).await?)?.remaining();
            trial.step(format!(
                "{name}: {pause} ms later, one more than the {left} left"
            ));
            let decision = trial
                .refuses(&[in_turn("ten", &quota, &spender, left + 1)])
                .await?;
            expect("remaining", only(&decision)?.remaining(), left)?;
            trial.step(format!("{name}: {pause} ms later, the {left} left"));
            let decision = trial
                .admits(&[in_turn("ten", &quota, &spender, left)])
                .await?;
            expect("remaining", only(&decision)?.remaining(), 0)?;
        }
    }
    Ok(())
}
