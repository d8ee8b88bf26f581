//! Tests requests that are free, cost more than the capacity, or cost more than the remaining
//! units.

use tower_quota_core::Outcome;

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, expect_remaining, only};
use super::trial::Trial;

pub(super) async fn cost_zero_charges_nothing(trial: &mut Trial, ten: &Sample) -> Verdict {
    let peek = [ten.at_once(0)];
    trial.step("a peek at a new key");
    let decision = trial.gets(&peek, Outcome::Allow).await?;
    expect_remaining(&decision, &[10])?;
    for cost in [7, 3] {
        trial.step(format!("{cost} units"));
        trial.admits(&[ten.in_turn(cost)]).await?;
        trial.step(format!("a peek after {cost} units, twice the same"));
        let before = trial.gets(&peek, Outcome::Allow).await?;
        expect("the second peek", &trial.check(&peek).await?, &before)?;
    }
    Ok(())
}

pub(super) async fn cost_above_capacity_never_fits(trial: &mut Trial, ten: &Sample) -> Verdict {
    for (taken, left) in [(0, 10), (4, 6)] {
        trial.step(format!("{taken} units"));
        trial.check(&[ten.in_turn(taken)]).await?;
        for cost in [11, 1_000, u64::MAX] {
            trial.step(format!("{cost} units when {left} are left"));
            let decision = trial.gets(&[ten.in_turn(cost)], Outcome::Never).await?;
            expect("retry after", decision.retry_after(), None)?;
            expect_remaining(&decision, &[left])?;
        }
        trial.step("nothing was charged");
        trial.leaves(&[ten.at_once(0)], &[left]).await?;
    }
    Ok(())
}

pub(super) async fn refusal_reports_what_is_left(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("7 units");
    let taken = trial.check(&[ten.at_once(7)]).await?;
    for cost in [4, 10] {
        trial.step(format!("{cost} units when 3 are left"));
        let decision = trial.refuses(&[ten.at_once(cost)]).await?;
        let (status, before) = (only(&decision)?, only(&taken)?);
        expect("remaining", status.remaining(), 3)?;
        expect("reset after", status.reset_after(), before.reset_after())?;
        expect("limit", status.limit, 10)?;
    }
    Ok(())
}
