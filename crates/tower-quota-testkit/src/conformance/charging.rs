//! Tests charges outside of checks, which are debts, resets and counted refusals.

use std::time::Duration;

use tower_quota_core::{Operation, Outcome, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{
    Sample, at_once, expect_allowed, expect_remaining, in_turn, key, retry_after,
};
use super::trial::{MICROSECOND, Trial};

pub(super) async fn charge_goes_into_debt(trial: &mut Trial) -> Verdict {
    for ten in trial.samples() {
        trial.step(format!("{ten}: a charge of 15 where 10 are left"));
        let charged = trial.apply(Operation::Charge, &[ten.at_once(15)]).await?;
        expect_allowed(&charged, true)?;
        expect_remaining(&charged, &[0])?;
        let one = [ten.at_once(1)];
        trial.step(format!("{ten}: nothing fits into a debt"));
        let retry = retry_after(&trial.check(&one).await?)?;
        trial.advance_to_just_before(retry);
        trial.refuses(&one).await?;
        trial.advance(MICROSECOND);
        trial.step(format!("{ten}: refilling has paid the debt"));
        trial.admits(&one).await?;
    }
    trial.step("a bucket of one unit a second, 15 of 10 taken");
    let (quota, bob) = (Quota::new(10, Duration::from_secs(10)), key("bob"));
    let taken_at = trial.admits(&[at_once("ten", &quota, &bob, 5)]).await?.at();
    trial
        .apply(
            Operation::Surcharge { taken_at },
            &[at_once("ten", &quota, &bob, 10)],
        )
        .await?;
    trial
        .gets(
            &[at_once("ten", &quota, &bob, 1)],
            Outcome::Refuse(Duration::from_secs(6)),
        )
        .await?;
    Ok(())
}

pub(super) async fn reset_clears_counters(trial: &mut Trial, ten: &Sample) -> Verdict {
    let (ann, bob) = (key(&format!("ann, {ten}")), key(&format!("bob, {ten}")));
    trial.step("all is taken, of two limits and two keys");
    for who in [&ann, &bob] {
        let both = [
            in_turn("ten", &ten.quota, who, 10),
            in_turn("other", &ten.quota, who, 10),
        ];
        trial.admits(&both).await?;
    }
    trial.step("one limit of one key is reset");
    let reset = trial
        .apply(Operation::Reset, &[at_once("ten", &ten.quota, &ann, 1)])
        .await?;
    expect_remaining(&reset, &[10])?;
    trial.step("the others are not");
    let peek = |who| {
        [
            at_once("ten", &ten.quota, who, 0),
            at_once("other", &ten.quota, who, 0),
        ]
    };
    trial.leaves(&peek(&ann), &[10, 0]).await?;
    trial.leaves(&peek(&bob), &[0, 0]).await
}

pub(super) async fn counted_refusals_are_charged(trial: &mut Trial, ten: &Sample) -> Verdict {
    let ask = |cost| {
        [
            at_once("strict", &ten.quota, &ten.key, cost).count_refusals(),
            at_once("mild", &ten.quota, &ten.key, cost),
        ]
    };
    trial.step("7 units");
    trial.leaves(&ask(7), &[3, 3]).await?;
    trial.step("5 more are refused, and the strict limit takes what is left");
    let decision = trial.refuses(&ask(5)).await?;
    expect_remaining(&decision, &[0, 3])?;
    trial.step("it never goes into debt");
    let before = trial.check(&ask(5)).await?;
    expect(
        "the same refusal again",
        &trial.check(&ask(5)).await?,
        &before,
    )?;
    trial.step("a peek is no refusal");
    trial.admits(&ask(0)).await?;
    trial.step("even so, the promised wait is kept");
    let retry = retry_after(&before)?;
    trial.advance(retry);
    trial.admits(&ask(5)).await?;
    Ok(())
}

pub(super) async fn refusal_elsewhere_is_judged(trial: &mut Trial, ten: &Sample) -> Verdict {
    let ask = |cost| {
        [
            in_turn("strict", &ten.quota, &ten.key, cost).count_refusals(),
            in_turn("mild", &ten.quota, &ten.key, cost),
        ]
    };
    trial.step("4 units that would fit are refused elsewhere, and the strict limit takes them");
    let mut decision = trial.apply(Operation::Refuse, &ask(4)).await?;
    expect_allowed(&decision, true)?;
    expect_remaining(&decision, &[6, 10])?;
    expect("refund", decision.refund(), None)?;
    trial.step("7 that would not fit get a wait, and take what is left");
    let decision = trial.apply(Operation::Refuse, &ask(7)).await?;
    expect_remaining(&decision, &[0, 10])?;
    let retry = retry_after(&decision)?;
    trial.step("admitted after the promised wait");
    trial.advance(retry);
    trial.admits(&ask(7)).await?;
    Ok(())
}
