//! Tests that the promises of a decision hold to the microsecond.

use std::time::Duration;

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, only, retry_after};
use super::trial::{MICROSECOND, Trial};

/// Takes all ten units in two parts, four seconds apart, and leaves the clock 1.5 s later.
async fn spend(trial: &mut Trial, ten: &Sample) -> Verdict {
    let start = trial.now();
    for (after, cost) in [(0, 4), (4_000, 6), (5_500, 10)] {
        trial.set(start + Duration::from_millis(after));
        trial.step(format!("{cost} units after {after} ms"));
        // Take the units that a bucket has regained before the last step too.
        let peek = trial.check(&[ten.at_once(0)]).await?;
        let cost = cost.min(only(&peek)?.remaining());
        trial.admits(&[ten.in_turn(cost)]).await?;
    }
    Ok(())
}

pub(super) async fn retry_after_is_exact(trial: &mut Trial, ten: &Sample) -> Verdict {
    for cost in [1, 3, 7, 10] {
        let ten = &Sample::new(format!("{ten}, cost {cost}"), ten.quota);
        trial.begin(ten);
        spend(trial, ten).await?;
        let charge = [ten.at_once(cost)];

        trial.step("refused");
        let retry = retry_after(&trial.check(&charge).await?)?;
        trial.advance_to_just_before(retry);
        trial.step(format!(
            "refused a microsecond before {retry:?} have passed"
        ));
        let decision = trial.refuses(&charge).await?;
        expect("retry after", decision.retry_after(), Some(MICROSECOND))?;
        trial.advance(MICROSECOND);
        trial.step(format!("admitted after {retry:?}"));
        trial.admits(&charge).await?;
    }
    Ok(())
}

pub(super) async fn reset_after_is_exact(trial: &mut Trial, ten: &Sample) -> Verdict {
    spend(trial, ten).await?;
    let peek = [ten.at_once(0)];
    trial.step("spent");
    let reset = only(&trial.check(&peek).await?)?.reset_after();
    trial.advance_to_just_before(reset);
    trial.step(format!(
        "not full a microsecond before {reset:?} have passed"
    ));
    let left = only(&trial.check(&peek).await?)?.remaining();
    expect("full", left == 10, false)?;
    trial.advance(MICROSECOND);
    trial.step(format!("full after {reset:?}"));
    let decision = trial.check(&peek).await?;
    let status = only(&decision)?;
    expect("remaining", status.remaining(), 10)?;
    expect("reset after", status.reset_after(), Duration::ZERO)
}

pub(super) async fn remaining_is_exact(trial: &mut Trial, ten: &Sample) -> Verdict {
    spend(trial, ten).await?;
    for pause in [700, 2_400, 1_300, 5_650] {
        trial.advance(Duration::from_millis(pause));
        trial.step(format!("{pause} ms later"));
        let left = only(&trial.check(&[ten.at_once(0)]).await?)?.remaining();
        trial.step(format!("{pause} ms later, one more than the {left} left"));
        let decision = trial.refuses(&[ten.in_turn(left + 1)]).await?;
        expect("remaining", only(&decision)?.remaining(), left)?;
        trial.step(format!("{pause} ms later, the {left} left"));
        let decision = trial.admits(&[ten.in_turn(left)]).await?;
        expect("remaining", only(&decision)?.remaining(), 0)?;
    }
    Ok(())
}
