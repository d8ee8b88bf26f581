//! Costs that are the most to be taken.

use std::time::Duration;

use tower_quota_core::{Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, only, retry_after};
use super::trial::Trial;

const WIDE: Quota = Quota::per_hour(100).fixed_window();

pub(super) async fn partial_grant_takes_what_is_left<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        for (cost, taken, left) in [(4, 4, 6), (u64::MAX, 6, 0)] {
            let step = format!("{name}: at most {cost}");
            let mut decision = trial
                .check(&step, &[in_turn("ten", &quota, &ann, cost).at_most()])
                .await?;
            expect_allowed(&step, &decision, true)?;
            expect(&step, "taken", only(&step, &decision)?.taken, taken)?;
            expect_remaining(&step, &decision, &[left])?;
            if let (0, Some(refund)) = (left, decision.refund()) {
                let step = format!("{name}: the units are refilled, and taken again");
                let back = in_turn("ten", &quota, &ann, taken);
                expect_remaining(&step, &trial.apply(&step, refund, &[back]).await?, &[taken])?;
                expect_remaining(
                    &step,
                    &trial.check(&step, &[back.cost(9).at_most()]).await?,
                    &[0],
                )?;
            }
        }
        let step = format!("{name}: with nothing left it is refused like one unit");
        let five = trial
            .check(&step, &[at_once("ten", &quota, &ann, 5).at_most()])
            .await?;
        let one = trial
            .check(&step, &[at_once("ten", &quota, &ann, 1)])
            .await?;
        expect(&step, "the decision", &five, &one)?;
        expect(&step, "taken", only(&step, &five)?.taken, 0)?;
        let step = format!("{name}: admitted after the promised wait");
        trial.advance(retry_after(&step, &five)?);
        let decision = trial
            .check(&step, &[at_once("ten", &quota, &ann, 1).at_most()])
            .await?;
        expect_allowed(&step, &decision, true)?;
        let step = format!("{name}: a peek takes nothing");
        let decision = trial
            .check(&step, &[at_once("ten", &quota, &ann, 0).at_most()])
            .await?;
        expect(&step, "taken", only(&step, &decision)?.taken, 0)?;
    }
    Ok(())
}

pub(super) async fn partial_grants_take_the_same<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (ann, bob) = (key(&format!("ann, {name}")), key(&format!("bob, {name}")));
        let step = format!("{name}: each takes the least that is left of any; a fixed cost stays");
        let wanted = [
            in_turn("ten", &quota, &ann, 50).at_most(),
            at_once("wide", &WIDE, &bob, 50).at_most(),
            at_once("requests", &WIDE, &ann, 1),
        ];
        let decision = trial.check(&step, &wanted).await?;
        expect_remaining(&step, &decision, &[0, 90, 99])?;
        let step = format!("{name}: one has nothing left");
        let decision = trial
            .check(&step, &wanted.map(|charge| charge.max_wait(Duration::ZERO)))
            .await?;
        expect_allowed(&step, &decision, false)?;
        expect_remaining(&step, &decision, &[0, 90, 99])?;
    }
    Ok(())
}

pub(super) async fn shadow_does_not_cut_partial_grants<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (narrow, ann) = (Quota::per_hour(3), key("ann"));
    let step = "a shadow with less left does not lessen what is taken";
    let wanted = [
        at_once("wide", &WIDE, &ann, 20).at_most(),
        at_once("narrow", &narrow, &ann, 20).at_most().shadow(),
    ];
    expect_remaining(step, &trial.check(step, &wanted).await?, &[80, 0])?;
    let step = "it would have refused";
    let decision = trial.check(step, &wanted).await?;
    expect_remaining(step, &decision, &[60, 0])?;
    expect(step, "would refuse", decision.would_refuse().count(), 1)
}
