//! Tests the modes of charges, which are reported, reported until debt, and forced.

use tower_quota_core::{Charge, ChargeMode, Decision, Operation, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, expect_remaining, only, retry_after};
use super::trial::{MICROSECOND, Trial};

pub(super) async fn reported_charge_takes_nothing(trial: &mut Trial, ten: &Sample) -> Verdict {
    let other = Quota::per_minute(100);
    let request = [
        ten.at_once(5).in_mode(ChargeMode::Reported),
        Charge::new("other", &other, &ten.key),
    ];
    trial.step("a report takes nothing");
    trial.leaves(&request, &[10, 99]).await?;
    trial.step("one unit is left, and a report admits");
    take(trial, ten, 9).await?;
    trial.leaves(&request, &[1, 98]).await?;
    trial.step("no unit is left, and a report refuses");
    take(trial, ten, 1).await?;
    let refused = trial.check(&request).await?;
    expect_remaining(&refused, &[0, 98])?;
    let retry = retry_after(&refused)?;
    trial.advance_to_just_before(retry);
    trial.refuses(&request).await?;
    trial.step("a unit is back after the promised wait");
    trial.advance(MICROSECOND);
    trial.admits(&request).await?;
    Ok(())
}

pub(super) async fn report_until_debt_refuses_in_debt(trial: &mut Trial, ten: &Sample) -> Verdict {
    let request = [ten.at_once(1).in_mode(ChargeMode::ReportedUntilDebt)];
    trial.step("nothing is left, and nothing is owed");
    take(trial, ten, 10).await?;
    trial.admits(&request).await?;
    trial.step("two units are owed");
    take(trial, ten, 2).await?;
    let refused = trial.check(&request).await?;
    expect("debt", only(&refused)?.debt(), 2)?;
    let retry = retry_after(&refused)?;
    trial.advance_to_just_before(retry);
    trial.refuses(&request).await?;
    trial.step("the debt is paid after the promised wait");
    trial.advance(MICROSECOND);
    let admitted = trial.admits(&request).await?;
    expect("debt", only(&admitted)?.debt(), 0)
}

pub(super) async fn forced_charge_is_always_taken(trial: &mut Trial, ten: &Sample) -> Verdict {
    let other = Quota::per_minute(1);
    let request = |cost| {
        [
            ten.in_turn(cost).in_mode(ChargeMode::Forced),
            Charge::new("other", &other, &ten.key),
        ]
    };
    trial.step("an admitted request takes 8 units");
    trial.leaves(&request(8), &[2, 0]).await?;
    trial.step("a refused request takes 5 more, into debt");
    let refused = trial.refuses(&request(5)).await?;
    expect_remaining(&refused, &[0, 0])?;
    expect("debt", refused.statuses()[0].debt(), 3)?;
    expect("taken", refused.statuses()[0].taken, 5)?;
    trial.step("a request that is refused elsewhere takes 1");
    let elsewhere = trial.apply(Operation::Refuse, &request(1)).await?;
    expect("debt", elsewhere.statuses()[0].debt(), 4)?;
    trial.step("more than the capacity never refuses");
    let alone = trial.admits(&request(11)[..1]).await?;
    expect("debt", only(&alone)?.debt(), 15)?;
    trial.step("a peek takes nothing");
    let peeked = trial.apply(Operation::Peek, &request(5)).await?;
    expect("debt", peeked.statuses()[0].debt(), 15)
}

pub(super) async fn reset_clears_a_debt(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("a debt of 90 is forgotten");
    let owed = take(trial, ten, 100).await?;
    expect("debt", only(&owed)?.debt(), 90)?;
    let reset = trial.apply(Operation::Reset, &[ten.at_once(1)]).await?;
    expect("debt", only(&reset)?.debt(), 0)?;
    expect_remaining(&reset, &[10])
}

async fn take(trial: &mut Trial, ten: &Sample, units: u64) -> Result<Decision, String> {
    let charge = ten.in_turn(units).in_mode(ChargeMode::Forced);
    trial.check(&[charge]).await
}
