//! Modes of charges: reported, reported until debt, and forced.

use tower_quota_core::{Charge, ChargeMode, Decision, Operation, Quota, Store};

use super::Outcome;
use super::failure::{Failure, expect};
use super::samples::{at_once, expect_allowed, expect_remaining, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

pub(super) async fn reported_charge_takes_nothing<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (ann, other) = (key(name), Quota::per_minute(100));
        let request = [
            at_once("ten", &quota, &ann, 5).in_mode(ChargeMode::Reported),
            Charge::new("other", &other, &ann),
        ];
        let step = format!("{name}: a report takes nothing");
        expect_remaining(&step, &trial.check(&step, &request).await?, &[10, 99])?;
        let step = format!("{name}: one unit is left, and a report admits");
        take(trial, &step, &quota, name, 9).await?;
        expect_remaining(&step, &trial.check(&step, &request).await?, &[1, 98])?;
        let step = format!("{name}: no unit is left, and a report refuses");
        take(trial, &step, &quota, name, 1).await?;
        let refused = trial.check(&step, &request).await?;
        expect_remaining(&step, &refused, &[0, 98])?;
        let retry = retry_after(&step, &refused)?;
        trial.advance_to_just_before(retry);
        expect_allowed(&step, &trial.check(&step, &request).await?, false)?;
        let step = format!("{name}: a unit is back after the promised wait");
        trial.advance(MICROSECOND);
        expect_allowed(&step, &trial.check(&step, &request).await?, true)?;
    }
    Ok(())
}

pub(super) async fn report_until_debt_refuses_in_debt<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let request = [at_once("ten", &quota, &ann, 1).in_mode(ChargeMode::ReportedUntilDebt)];
        let step = format!("{name}: nothing is left, and nothing is owed");
        take(trial, &step, &quota, name, 10).await?;
        expect_allowed(&step, &trial.check(&step, &request).await?, true)?;
        let step = format!("{name}: two units are owed");
        take(trial, &step, &quota, name, 2).await?;
        let refused = trial.check(&step, &request).await?;
        expect(&step, "debt", only(&step, &refused)?.debt(), 2)?;
        let retry = retry_after(&step, &refused)?;
        trial.advance_to_just_before(retry);
        expect_allowed(&step, &trial.check(&step, &request).await?, false)?;
        let step = format!("{name}: the debt is paid after the promised wait");
        trial.advance(MICROSECOND);
        let admitted = trial.check(&step, &request).await?;
        expect_allowed(&step, &admitted, true)?;
        expect(&step, "debt", only(&step, &admitted)?.debt(), 0)?;
    }
    Ok(())
}

pub(super) async fn forced_charge_is_always_taken<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (ann, other) = (key(name), Quota::per_minute(1));
        let request = |cost| {
            [
                Charge::new("ten", &quota, &ann)
                    .cost(cost)
                    .in_mode(ChargeMode::Forced),
                Charge::new("other", &other, &ann),
            ]
        };
        let step = format!("{name}: an admitted request takes 8 units");
        expect_remaining(&step, &trial.check(&step, &request(8)).await?, &[2, 0])?;
        let step = format!("{name}: a refused request takes 5 more, into debt");
        let refused = trial.check(&step, &request(5)).await?;
        expect_allowed(&step, &refused, false)?;
        expect_remaining(&step, &refused, &[0, 0])?;
        expect(&step, "debt", refused.statuses()[0].debt(), 3)?;
        expect(&step, "taken", refused.statuses()[0].taken, 5)?;
        let step = format!("{name}: a request that is refused elsewhere takes 1");
        let elsewhere = trial.apply(&step, Operation::Refuse, &request(1)).await?;
        expect(&step, "debt", elsewhere.statuses()[0].debt(), 4)?;
        let step = format!("{name}: more than the capacity never refuses");
        let alone = trial.check(&step, &request(11)[..1]).await?;
        expect_allowed(&step, &alone, true)?;
        expect(&step, "debt", only(&step, &alone)?.debt(), 15)?;
        let step = format!("{name}: a peek takes nothing");
        let peeked = trial.apply(&step, Operation::Peek, &request(5)).await?;
        expect(&step, "debt", peeked.statuses()[0].debt(), 15)?;
    }
    Ok(())
}

pub(super) async fn reset_clears_a_debt<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let step = format!("{name}: a debt of 90 is forgotten");
        let owed = take(trial, &step, &quota, name, 100).await?;
        expect(&step, "debt", only(&step, &owed)?.debt(), 90)?;
        let reset = trial
            .apply(&step, Operation::Reset, &[at_once("ten", &quota, &ann, 1)])
            .await?;
        expect(&step, "debt", only(&step, &reset)?.debt(), 0)?;
        expect_remaining(&step, &reset, &[10])?;
    }
    Ok(())
}

/// Takes units, whether they fit or not.
async fn take<S: Store>(
    trial: &mut Trial<S>,
    step: &str,
    quota: &Quota,
    name: &str,
    units: u64,
) -> Result<Decision, Failure> {
    let ann = key(name);
    let charge = Charge::new("ten", quota, &ann).cost(units);
    let charge = charge.in_mode(ChargeMode::Forced);
    trial.check(step, &[charge]).await
}
