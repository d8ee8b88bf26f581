//! Giving back.

use std::time::Duration;

use tower_quota_core::{Decision, Operation, Quota, Store};

use super::Outcome;
use super::failure::{Failure, expect};
use super::samples::{TEN_IN_TEN, at_once, expect_remaining, in_turn, key};
use super::trial::Trial;

/// The one refund a decision is good for.
fn refund(step: &str, decision: &mut Decision) -> Result<Operation, Failure> {
    decision.refund().ok_or_else(|| Failure::new(step, "an admitted request should have a refund and has none"))
}

pub(super) async fn a_refund_gives_back<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in TEN_IN_TEN {
        let ann = key(name);
        let step = format!("{name}: 2 units, then 5");
        trial.check(&step, &[in_turn("ten", &quota, &ann, 2)]).await?;
        let five = [in_turn("ten", &quota, &ann, 5)];
        let mut decision = trial.check(&step, &five).await?;
        expect_remaining(&step, &decision, &[3])?;
        let step = format!("{name}: the 5 come back");
        let operation = refund(&step, &mut decision)?;
        expect_remaining(&step, &trial.apply(&step, operation, &five).await?, &[8])?;
        let step = format!("{name}: a part of a charge can be given back");
        let mut decision = trial.check(&step, &five).await?;
        let operation = refund(&step, &mut decision)?;
        let part = [in_turn("ten", &quota, &ann, 1)];
        expect_remaining(&step, &trial.apply(&step, operation, &part).await?, &[4])?;
    }
    Ok(())
}

pub(super) async fn a_refund_is_capped<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in TEN_IN_TEN {
        let ann = key(name);
        let step = format!("{name}: more than was taken");
        let mut decision = trial.check(&step, &[in_turn("ten", &quota, &ann, 4)]).await?;
        let operation = refund(&step, &mut decision)?;
        for cost in [9, u64::MAX] {
            let more = [in_turn("ten", &quota, &ann, cost)];
            expect_remaining(&step, &trial.apply(&step, operation, &more).await?, &[10])?;
        }
        let step = format!("{name}: to a subject nobody has seen");
        let bob = key(&format!("bob, {name}"));
        let fresh = [in_turn("ten", &quota, &bob, 3)];
        expect_remaining(&step, &trial.apply(&step, operation, &fresh).await?, &[10])?;
    }
    Ok(())
}

pub(super) async fn a_refund_is_for_its_own_window<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ten = Quota::per_minute(10);
    let quotas = [ten.fixed_window(), ten.fixed_window().from_first_request(), ten.sliding_window(), ten.sliding_log()];
    // Seconds between a charge of 8 and one of 4. The refund of the 8 comes with the 4: within the window of the 8, in
    // the one after it (where a sliding window still weighs them by half), and beyond. Only the 4 may be left of it.
    for seconds in [20, 90, 150] {
        for quota in quotas {
            let whose = format!("{quota:?}, {seconds} s later");
            let ann = key(&whose);
            let eight = [at_once("ten", &quota, &ann, 8)];
            let four = [at_once("ten", &quota, &ann, 4)];
            let step = format!("{whose}: 8 units");
            let mut decision = trial.check(&step, &eight).await?;
            trial.advance(Duration::from_secs(seconds));
            let step = format!("{whose}: 4 units, taken in any case");
            trial.apply(&step, Operation::Charge, &four).await?;
            let step = format!("{whose}: the 8 are given back");
            let operation = refund(&step, &mut decision)?;
            expect_remaining(&step, &trial.apply(&step, operation, &eight).await?, &[6])?;
            // On to the start of a minute.
            trial.advance(Duration::from_secs(600 - seconds));
        }
    }
    Ok(())
}

pub(super) async fn a_refund_works_once<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in TEN_IN_TEN {
        let ann = key(name);
        let step = format!("{name}: 8 units");
        let charge = [at_once("ten", &quota, &ann, 8)];
        let mut admitted = trial.check(&step, &charge).await?;
        let step = format!("{name}: a clone has no refund, the original has one");
        expect(&step, "the clone's refund", admitted.clone().refund(), None)?;
        let expected = Operation::Refund { taken_at: admitted.at() };
        expect(&step, "the first refund", admitted.refund(), Some(expected))?;
        expect(&step, "the second refund", admitted.refund(), None)?;
        let step = format!("{name}: a refusal has none");
        expect(&step, "the refund", trial.check(&step, &charge).await?.refund(), None)?;
        let step = format!("{name}: a refund has none of its own, nor has a reset");
        for operation in [expected, Operation::Reset] {
            expect(&step, "the refund", trial.apply(&step, operation, &charge).await?.refund(), None)?;
        }
    }
    Ok(())
}
