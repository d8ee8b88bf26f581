//! Penalties.

use std::time::Duration;

use tower_quota_core::{Operation, Outcome as Answer, Penalty, Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

/// Three refusals are free, each further one costs 20 s, up to 100 s.
const PENALTY: Penalty = Penalty::after(3)
    .step(Duration::from_secs(20))
    .most(Duration::from_secs(119));

pub(super) async fn first_refusals_are_free<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let one = [at_once("ten", &quota, &ann, 1).penalty(&PENALTY)];
        let step = format!("{name}: all ten are taken");
        trial
            .check(&step, &[in_turn("ten", &quota, &ann, 10).penalty(&PENALTY)])
            .await?;
        let step = format!("{name}: without a penalty it would be refused like this");
        let plain = trial
            .check(&step, &[at_once("ten", &quota, &ann, 1)])
            .await?;
        for refusal in 1..=3 {
            let step = format!("{name}: refusal {refusal} costs nothing");
            expect(
                &step,
                "the decision",
                &trial.check(&step, &one).await?,
                &plain,
            )?;
        }
        let step = format!("{name}: refusal 4 costs a step");
        let decision = trial.check(&step, &one).await?;
        expect(
            &step,
            "outcome",
            decision.outcome(),
            Answer::Refuse(Duration::from_secs(20)),
        )?;
        expect(&step, "taken", only(&step, &decision)?.taken, 0)?;
        trial.advance_to_just_before(Duration::from_secs(20));
        let step = format!("{name}: blocked to the last microsecond, with no units left");
        let peek = trial.check(&step, &[one[0].cost(0)]).await?;
        expect_remaining(&step, &peek, &[0])?;
        trial.advance(MICROSECOND);
        let step = format!("{name}: not blocked any longer");
        expect_allowed(&step, &trial.check(&step, &one).await?, true)?;
    }
    Ok(())
}

pub(super) async fn block_grows_and_expires<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (quota, ann) = (Quota::per_minute(1).fixed_window(), key("ann"));
    let one = [at_once("one", &quota, &ann, 1).penalty(&PENALTY)];
    let never = [at_once("one", &quota, &ann, 2).penalty(&PENALTY)];
    let step = "three refusals are free";
    for _ in 0..3 {
        expect(
            step,
            "outcome",
            trial.check(step, &never).await?.outcome(),
            Answer::Never,
        )?;
    }
    for seconds in [20, 40, 60, 80, 100, 100, 100] {
        let step =
            format!("blocked for {seconds} s after repeated refusals, though nothing was taken");
        trial.check(&step, &never).await?;
        let mut seen = trial.check(&step, &[one[0].cost(0)]).await?;
        expect(&step, "a peek is allowed", seen.is_allowed(), true)?;
        expect(
            &step,
            "reset after",
            only(&step, &seen)?.reset_after(),
            Duration::from_secs(seconds),
        )?;
        expect(&step, "refund", seen.refund().is_some(), true)?;
    }
    let step = "an attempt before the end adds to it, up to the cap";
    trial.advance(Duration::from_secs(10));
    let retry = retry_after(step, &trial.check(step, &one).await?)?;
    expect(step, "retry after", retry, Duration::from_secs(100))?;
    let step = "after the block the next refusal blocks again";
    trial.advance(Duration::from_secs(100));
    expect_allowed(step, &trial.check(step, &one).await?, true)?;
    trial.check(step, &never).await?;
    let peek = trial.check(step, &[one[0].cost(0)]).await?;
    expect_remaining(step, &peek, &[0])?;
    let step = "strikes expire with time";
    trial.advance(Duration::from_secs(80));
    expect(
        step,
        "outcome",
        trial.check(step, &never).await?.outcome(),
        Answer::Never,
    )?;
    expect_allowed(step, &trial.check(step, &one).await?, true)?;
    let step = "a reset removes all strikes";
    for _ in 0..9 {
        trial.check(step, &never).await?;
    }
    trial.apply(step, Operation::Reset, &one).await?;
    expect_allowed(step, &trial.check(step, &one).await?, true)
}

pub(super) async fn only_own_refusals_give_strikes<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (few, narrow, ann, everyone) = (
        Quota::per_hour(5),
        Quota::per_hour(1),
        key("ann"),
        key("everyone"),
    );
    let both = [
        at_once("own", &few, &ann, 1).penalty(&PENALTY),
        at_once("shared", &narrow, &everyone, 1),
    ];
    let own = [both[0]];
    let step = "the shared limit refuses: no strike for ann";
    trial.check(step, &both).await?;
    for _ in 0..9 {
        expect_allowed(step, &trial.check(step, &both).await?, false)?;
    }
    trial.apply(step, Operation::Refuse, &own).await?;
    let step = "so ann still has the rest of the units";
    for _ in 0..4 {
        expect_allowed(step, &trial.check(step, &own).await?, true)?;
    }
    let step = "ann's own limit refuses, also after another limit has refused";
    let retry = retry_after(step, &trial.check(step, &own).await?)?;
    for _ in 0..2 {
        let decision = trial.check(step, &both).await?;
        expect(
            step,
            "the wait of ann's limit",
            decision.statuses()[0].outcome,
            Answer::Refuse(retry),
        )?;
    }
    let decision = trial.apply(step, Operation::Refuse, &own).await?;
    expect(
        step,
        "the wait of ann's limit",
        decision.outcome(),
        Answer::Refuse(retry.max(Duration::from_secs(20))),
    )?;
    let step = "charges and refunds give no strike";
    for operation in [
        Operation::Charge,
        Operation::Refund {
            taken_at: trial.now(),
        },
    ] {
        expect_allowed(step, &trial.apply(step, operation, &own).await?, true)?;
    }
    let step = "a shadow penalty is reported and never blocks";
    let shadow = [at_once("shadow", &narrow, &ann, 2)
        .penalty(&PENALTY)
        .shadow()];
    for _ in 0..4 {
        expect_allowed(step, &trial.check(step, &shadow).await?, true)?;
    }
    let decision = trial.check(step, &[shadow[0].cost(1)]).await?;
    let seen = decision.would_refuse().map(|status| status.outcome).next();
    expect(
        step,
        "would refuse",
        seen,
        Some(Answer::Refuse(Duration::from_secs(40))),
    )
}

pub(super) async fn cost_zero_is_not_blocked<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (quota, ann) = (Quota::per_hour(10), key("ann"));
    let free = [
        at_once("ten", &quota, &ann, 0).penalty(&PENALTY),
        at_once("other", &quota, &ann, 11),
    ];
    let step = "refusals of other limits cost nothing of this limit";
    for _ in 0..9 {
        expect(
            step,
            "outcome",
            trial.check(step, &free).await?.outcome(),
            Answer::Never,
        )?;
    }
    let step = "no strike was given";
    expect_allowed(step, &trial.check(step, &[free[0].cost(1)]).await?, true)?;
    let step = "a blocked client may peek";
    for _ in 0..4 {
        trial.check(step, &[free[0].cost(11)]).await?;
    }
    expect_allowed(step, &trial.check(step, &[free[0].cost(1)]).await?, false)?;
    expect_allowed(step, &trial.check(step, &[free[0]]).await?, true)
}

pub(super) async fn reset_clears_strikes<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (quota, ann) = (Quota::per_minute(1).fixed_window(), key("ann"));
    let one = [at_once("one", &quota, &ann, 1).penalty(&PENALTY)];
    let step = "ann is blocked";
    for _ in 0..9 {
        trial.check(step, &[one[0].cost(2)]).await?;
    }
    expect_allowed(step, &trial.check(step, &one).await?, false)?;
    let step = "a reset by limit and key, which does not name the penalty";
    trial
        .apply(step, Operation::Reset, &[at_once("one", &quota, &ann, 1)])
        .await?;
    let step = "ann is not blocked, and the first refusals are free again";
    expect_allowed(step, &trial.check(step, &one).await?, true)?;
    let decision = trial.check(step, &[one[0].cost(2)]).await?;
    expect(step, "outcome", decision.outcome(), Answer::Never)
}

pub(super) async fn peek_sees_a_block<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (quota, ann) = (Quota::per_hour(10), key("ann"));
    let one = [at_once("ten", &quota, &ann, 1).penalty(&PENALTY)];
    let step = "four refusals block ann for a step";
    for _ in 0..4 {
        trial.check(step, &[one[0].cost(11)]).await?;
    }
    for cost in [0, 1] {
        let step = format!("a peek of {cost} reports the end of the block");
        let peek = trial
            .apply(&step, Operation::Peek, &[one[0].cost(cost)])
            .await?;
        expect(
            &step,
            "outcome",
            peek.outcome(),
            Answer::Refuse(Duration::from_secs(20)),
        )?;
        expect_remaining(&step, &peek, &[0])?;
    }
    Ok(())
}
