//! Tests partial grants, where the cost is a maximum.

use std::time::Duration;

use tower_quota_core::Quota;

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_remaining, in_turn, key, only, retry_after};
use super::trial::Trial;

const WIDE: Quota = Quota::per_hour(100).fixed_window();

pub(super) async fn partial_grant_takes_what_is_left(trial: &mut Trial, ten: &Sample) -> Verdict {
    for (cost, taken, left) in [(4, 4, 6), (u64::MAX, 6, 0)] {
        trial.step(format!("at most {cost}"));
        let mut decision = trial.admits(&[ten.in_turn(cost).at_most()]).await?;
        expect("taken", only(&decision)?.taken, taken)?;
        expect_remaining(&decision, &[left])?;
        if let (0, Some(refund)) = (left, decision.refund()) {
            trial.step("the units are refilled, and taken again");
            let back = ten.in_turn(taken);
            expect_remaining(&trial.apply(refund, &[back]).await?, &[taken])?;
            trial.leaves(&[back.cost(9).at_most()], &[0]).await?;
        }
    }
    trial.step("with nothing left it is refused like one unit");
    let five = trial.check(&[ten.at_once(5).at_most()]).await?;
    let one = trial.check(&[ten.at_once(1)]).await?;
    expect("the decision", &five, &one)?;
    expect("taken", only(&five)?.taken, 0)?;
    trial.step("admitted after the promised wait");
    trial.advance(retry_after(&five)?);
    trial.admits(&[ten.at_once(1).at_most()]).await?;
    trial.step("a peek takes nothing");
    let decision = trial.check(&[ten.at_once(0).at_most()]).await?;
    expect("taken", only(&decision)?.taken, 0)
}

pub(super) async fn partial_grants_take_the_same(trial: &mut Trial, ten: &Sample) -> Verdict {
    let (ann, bob) = (key(&format!("ann, {ten}")), key(&format!("bob, {ten}")));
    trial.step("each takes the least that is left of any; a fixed cost stays");
    let wanted = [
        in_turn("ten", &ten.quota, &ann, 50).at_most(),
        at_once("wide", &WIDE, &bob, 50).at_most(),
        at_once("requests", &WIDE, &ann, 1),
    ];
    trial.leaves(&wanted, &[0, 90, 99]).await?;
    trial.step("one has nothing left");
    let decision = trial
        .refuses(&wanted.map(|charge| charge.max_wait(Duration::ZERO)))
        .await?;
    expect_remaining(&decision, &[0, 90, 99])
}

pub(super) async fn shadow_does_not_cut_partial_grants(trial: &mut Trial) -> Verdict {
    let (narrow, ann) = (Quota::per_hour(3), key("ann"));
    trial.step("a shadow with less left does not lessen what is taken");
    let wanted = [
        at_once("wide", &WIDE, &ann, 20).at_most(),
        at_once("narrow", &narrow, &ann, 20).at_most().shadow(),
    ];
    trial.leaves(&wanted, &[80, 0]).await?;
    trial.step("it would have refused");
    let decision = trial.check(&wanted).await?;
    expect_remaining(&decision, &[60, 0])?;
    expect("would refuse", decision.would_refuse().count(), 1)
}
