//! Tests refunds.

use std::time::Duration;

use tower_quota_core::{Operation, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_remaining, in_turn, key};
use super::trial::Trial;

pub(super) async fn refund_restores_units(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("2 units, then 5");
    trial.check(&[ten.in_turn(2)]).await?;
    let five = [ten.in_turn(5)];
    let mut decision = trial.check(&five).await?;
    expect_remaining(&decision, &[3])?;
    trial.step("the 5 are refunded");
    let refunded = trial.refund(&mut decision, &five).await?;
    expect_remaining(&refunded, &[8])?;
    expect("units given back", refunded.statuses()[0].taken, 5)?;
    trial.step("a part of a charge can be refunded");
    let mut decision = trial.check(&five).await?;
    let part = [ten.in_turn(1)];
    expect_remaining(&trial.refund(&mut decision, &part).await?, &[4])
}

pub(super) async fn refund_is_capped(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("more than was taken");
    let taken = trial.admits(&[ten.in_turn(4)]).await?;
    let operation = Operation::Refund {
        taken_at: taken.at(),
    };
    for (cost, given) in [(9, 4), (u64::MAX, 0)] {
        let more = [ten.in_turn(cost)];
        let refunded = trial.apply(operation, &more).await?;
        expect_remaining(&refunded, &[10])?;
        expect("units given back", refunded.statuses()[0].taken, given)?;
    }
    trial.step("a refund to an unknown client");
    let bob = key(&format!("bob, {ten}"));
    let fresh = [in_turn("ten", &ten.quota, &bob, 3)];
    expect_remaining(&trial.apply(operation, &fresh).await?, &[10])
}

pub(super) async fn refund_goes_to_its_own_window(trial: &mut Trial) -> Verdict {
    let ten = Quota::per_minute(10);
    let quotas = [
        ten.fixed_window(),
        ten.fixed_window().from_first_request(),
        ten.sliding_window(),
        ten.sliding_log(),
    ];
    // These are the seconds between a charge of 8 units and a charge of 4 units with the refund of
    // the 8. The refund comes in the same window, in the next window (where a sliding window still
    // counts half of the 8), and later. Afterwards only the 4 units may be used.
    for seconds in [20, 90, 150] {
        for quota in quotas {
            let case = format!("{quota:?}, {seconds} s later");
            let ann = key(&case);
            let eight = [at_once("ten", &quota, &ann, 8)];
            let four = [at_once("ten", &quota, &ann, 4)];
            trial.step(format!("{case}: 8 units"));
            let mut decision = trial.check(&eight).await?;
            trial.advance(Duration::from_secs(seconds));
            trial.step(format!("{case}: 4 units, taken in any case"));
            trial.apply(Operation::Charge, &four).await?;
            trial.step(format!("{case}: the 8 are refunded"));
            expect_remaining(&trial.refund(&mut decision, &eight).await?, &[6])?;
            // Advance to the start of a minute.
            trial.advance(Duration::from_secs(600 - seconds));
        }
    }
    Ok(())
}

pub(super) async fn refund_works_once(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("8 units");
    let charge = [ten.at_once(8)];
    let mut admitted = trial.check(&charge).await?;
    trial.step("a clone has no refund, the original has one");
    expect("the clone's refund", admitted.clone().refund(), None)?;
    let expected = Operation::Refund {
        taken_at: admitted.at(),
    };
    expect("the first refund", admitted.refund(), Some(expected))?;
    expect("the second refund", admitted.refund(), None)?;
    trial.step("a refusal has none");
    expect("the refund", trial.check(&charge).await?.refund(), None)?;
    trial.step("a refund has none of its own, nor has a reset");
    for operation in [expected, Operation::Reset] {
        expect(
            "the refund",
            trial.apply(operation, &charge).await?.refund(),
            None,
        )?;
    }
    Ok(())
}

pub(super) async fn refund_across_time_creates_no_units(trial: &mut Trial) -> Verdict {
    for quota in [Quota::per_minute(10), Quota::per_minute(10).gcra()] {
        let ann = key(&format!("{:?}", quota.algorithm()));
        let ten = [at_once("ten", &quota, &ann, 10)];
        let mut charged = Vec::new();
        for minute in 0..5 {
            trial.step(format!("minute {minute}: all ten are taken"));
            let decision = trial.admits(&ten).await?;
            charged.push(decision);
            trial.advance(Duration::from_secs(60));
        }
        for (minute, mut decision) in charged.into_iter().enumerate() {
            trial.step(format!(
                "the ten of minute {minute} are refunded, and were refilled before"
            ));
            expect_remaining(&trial.refund(&mut decision, &ten).await?, &[10])?;
        }
        trial.step("ten are admitted, and no more");
        trial.admits(&ten).await?;
        trial.refuses(&[at_once("ten", &quota, &ann, 1)]).await?;
        trial.step("a refund after half a minute restores half of it");
        let mut decision = trial.apply(Operation::Charge, &ten).await?;
        trial.advance(Duration::from_secs(30));
        trial.refund(&mut decision, &ten).await?;
        trial
            .leaves(&[at_once("ten", &quota, &ann, 0)], &[0])
            .await?;
    }
    Ok(())
}
