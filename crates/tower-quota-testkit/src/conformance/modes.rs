//! Modes of charges: reported, reported until debt, and forced.

use tower_quota_core::{Charge, ChargeMode, Decision, Operation, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{at_once, expect_remaining, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

pub(super) async fn reported_charge_takes_nothing(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        let (ann, other) = (key(name), Quota::per_minute(100));
        let request = [
            at_once("ten", &quota, &ann, 5).in_mode(ChargeMode::Reported),
            Charge::new("other", &other, &ann),
        ];
        trial.step(format!("{name}: a report takes nothing"));
        trial.leaves(&request, &[10, 99]).await?;
        trial.step(format!("{name}: one unit is left, and a report admits"));
        take(trial, &quota, name, 9).await?;
        trial.leaves(&request, &[1, 98]).await?;
        trial.step(format!("{name}: no unit is left, and a report refuses"));
        take(trial, &quota, name, 1).await?;
        let refused = trial.check(&request).await?;
        expect_remaining(&refused, &[0, 98])?;
        let retry = retry_after(&refused)?;
        trial.advance_to_just_before(retry);
        trial.refuses(&request).await?;
        trial.step(format!("{name}: a unit is back after the promised wait"));
        trial.advance(MICROSECOND);
        trial.admits(&request).await?;
    }
    Ok(())
}

pub(super) async fn report_until_debt_refuses_in_debt(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let request = [at_once("ten", &quota, &ann, 1).in_mode(ChargeMode::ReportedUntilDebt)];
        trial.step(format!("{name}: nothing is left, and nothing is owed"));
        take(trial, &quota, name, 10).await?;
        trial.admits(&request).await?;
        trial.step(format!("{name}: two units are owed"));
        take(trial, &quota, name, 2).await?;
        let refused = trial.check(&request).await?;
        expect("debt", only(&refused)?.debt(), 2)?;
        let retry = retry_after(&refused)?;
        trial.advance_to_just_before(retry);
        trial.refuses(&request).await?;
        trial.step(format!("{name}: the debt is paid after the promised wait"));
        trial.advance(MICROSECOND);
        let admitted = trial.admits(&request).await?;
        expect("debt", only(&admitted)?.debt(), 0)?;
    }
    Ok(())
}

pub(super) async fn forced_charge_is_always_taken(trial: &mut Trial) -> Verdict {
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
        trial.step(format!("{name}: an admitted request takes 8 units"));
        trial.leaves(&request(8), &[2, 0]).await?;
        trial.step(format!("{name}: a refused request takes 5 more, into debt"));
        let refused = trial.refuses(&request(5)).await?;
        expect_remaining(&refused, &[0, 0])?;
        expect("debt", refused.statuses()[0].debt(), 3)?;
        expect("taken", refused.statuses()[0].taken, 5)?;
        trial.step(format!(
            "{name}: a request that is refused elsewhere takes 1"
        ));
        let elsewhere = trial.apply(Operation::Refuse, &request(1)).await?;
        expect("debt", elsewhere.statuses()[0].debt(), 4)?;
        trial.step(format!("{name}: more than the capacity never refuses"));
        let alone = trial.admits(&request(11)[..1]).await?;
        expect("debt", only(&alone)?.debt(), 15)?;
        trial.step(format!("{name}: a peek takes nothing"));
        let peeked = trial.apply(Operation::Peek, &request(5)).await?;
        expect("debt", peeked.statuses()[0].debt(), 15)?;
    }
    Ok(())
}

pub(super) async fn reset_clears_a_debt(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        trial.step(format!("{name}: a debt of 90 is forgotten"));
        let owed = take(trial, &quota, name, 100).await?;
        expect("debt", only(&owed)?.debt(), 90)?;
        let reset = trial
            .apply(Operation::Reset, &[at_once("ten", &quota, &ann, 1)])
            .await?;
        expect("debt", only(&reset)?.debt(), 0)?;
        expect_remaining(&reset, &[10])?;
    }
    Ok(())
}

/// Takes units, whether they fit or not.
async fn take(
    trial: &mut Trial,
    quota: &Quota,
    name: &str,
    units: u64,
) -> Result<Decision, String> {
    let ann = key(name);
    let charge = Charge::new("ten", quota, &ann).cost(units);
    let charge = charge.in_mode(ChargeMode::Forced);
    trial.check(&[charge]).await
}
