//! Charges that are not asked for: debts, resets, and the price of a refusal.

use std::time::Duration;

use tower_quota_core::{Operation, Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, retry_after};
use super::trial::{MICROSECOND, Trial};

pub(super) async fn charge_goes_into_debt<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let step = format!("{name}: a charge of 15 where 10 are left");
        let charged = trial
            .apply(
                &step,
                Operation::Charge,
                &[at_once("ten", &quota, &ann, 15)],
            )
            .await?;
        expect_allowed(&step, &charged, true)?;
        expect_remaining(&step, &charged, &[0])?;
        let one = [at_once("ten", &quota, &ann, 1)];
        let step = format!("{name}: nothing fits into a debt");
        let retry = retry_after(&step, &trial.check(&step, &one).await?)?;
        trial.advance_to_just_before(retry);
        expect_allowed(&step, &trial.check(&step, &one).await?, false)?;
        trial.advance(MICROSECOND);
        let step = format!("{name}: refilling has paid the debt");
        expect_allowed(&step, &trial.check(&step, &one).await?, true)?;
    }
    let step = "a bucket of one unit a second, 15 of 10 taken";
    let (quota, bob) = (Quota::new(10, Duration::from_secs(10)), key("bob"));
    trial
        .apply(step, Operation::Charge, &[at_once("ten", &quota, &bob, 15)])
        .await?;
    let decision = trial
        .check(step, &[at_once("ten", &quota, &bob, 1)])
        .await?;
    expect(
        step,
        "retry after",
        decision.retry_after(),
        Some(Duration::from_secs(6)),
    )
}

pub(super) async fn reset_clears_counters<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (ann, bob) = (key(&format!("ann, {name}")), key(&format!("bob, {name}")));
        let step = format!("{name}: all is taken, of two limits and two keys");
        for who in [&ann, &bob] {
            let both = [
                in_turn("ten", &quota, who, 10),
                in_turn("other", &quota, who, 10),
            ];
            expect_allowed(&step, &trial.check(&step, &both).await?, true)?;
        }
        let step = format!("{name}: one limit of one key is reset");
        let reset = trial
            .apply(&step, Operation::Reset, &[at_once("ten", &quota, &ann, 1)])
            .await?;
        expect_remaining(&step, &reset, &[10])?;
        let step = format!("{name}: the others are not");
        let peek = |who| {
            [
                at_once("ten", &quota, who, 0),
                at_once("other", &quota, who, 0),
            ]
        };
        expect_remaining(&step, &trial.check(&step, &peek(&ann)).await?, &[10, 0])?;
        expect_remaining(&step, &trial.check(&step, &peek(&bob)).await?, &[0, 0])?;
    }
    Ok(())
}

pub(super) async fn counted_refusals_are_charged<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let ask = |cost| {
            [
                at_once("strict", &quota, &ann, cost).count_refusals(),
                at_once("mild", &quota, &ann, cost),
            ]
        };
        let step = format!("{name}: 7 units");
        expect_remaining(&step, &trial.check(&step, &ask(7)).await?, &[3, 3])?;
        let step = format!("{name}: 5 more are refused, and the strict limit takes what is left");
        let decision = trial.check(&step, &ask(5)).await?;
        expect_allowed(&step, &decision, false)?;
        expect_remaining(&step, &decision, &[0, 3])?;
        let step = format!("{name}: it never goes into debt");
        let before = trial.check(&step, &ask(5)).await?;
        expect(
            &step,
            "the same refusal again",
            &trial.check(&step, &ask(5)).await?,
            &before,
        )?;
        let step = format!("{name}: a peek is no refusal");
        expect_allowed(&step, &trial.check(&step, &ask(0)).await?, true)?;
        let step = format!("{name}: even so, the promised wait is kept");
        let retry = retry_after(&step, &before)?;
        trial.advance(retry);
        expect_allowed(&step, &trial.check(&step, &ask(5)).await?, true)?;
    }
    Ok(())
}

pub(super) async fn refusal_elsewhere_is_judged<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let ask = |cost| {
            [
                in_turn("strict", &quota, &ann, cost).count_refusals(),
                in_turn("mild", &quota, &ann, cost),
            ]
        };
        let step = format!(
            "{name}: 4 units that would fit are refused elsewhere, and the strict limit takes them"
        );
        let mut decision = trial.apply(&step, Operation::Refuse, &ask(4)).await?;
        expect_allowed(&step, &decision, true)?;
        expect_remaining(&step, &decision, &[6, 10])?;
        expect(&step, "refund", decision.refund(), None)?;
        let step = format!("{name}: 7 that would not fit get a wait, and take what is left");
        let decision = trial.apply(&step, Operation::Refuse, &ask(7)).await?;
        expect_remaining(&step, &decision, &[0, 10])?;
        let retry = retry_after(&step, &decision)?;
        let step = format!("{name}: admitted after the promised wait");
        trial.advance(retry);
        expect_allowed(&step, &trial.check(&step, &ask(7)).await?, true)?;
    }
    Ok(())
}
