//! Tests penalties.

use std::time::Duration;

use tower_quota_core::{Operation, Outcome, Penalty, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_allowed, expect_remaining, key, only, retry_after};
use super::trial::{MICROSECOND, Trial};

/// A penalty with three free refusals. Each further refusal blocks for 20 s longer, up to 100 s.
const PENALTY: Penalty = Penalty::after(3)
    .step(Duration::from_secs(20))
    .most(Duration::from_secs(119));

pub(super) async fn first_refusals_are_free(trial: &mut Trial, ten: &Sample) -> Verdict {
    let one = [ten.at_once(1).penalty(&PENALTY)];
    trial.step("all ten are taken");
    trial.check(&[ten.in_turn(10).penalty(&PENALTY)]).await?;
    trial.step("without a penalty it would be refused like this");
    let plain = trial.check(&[ten.at_once(1)]).await?;
    for refusal in 1..=3 {
        trial.step(format!("refusal {refusal} costs nothing"));
        expect("the decision", &trial.check(&one).await?, &plain)?;
    }
    trial.step("refusal 4 costs a step");
    let decision = trial
        .gets(&one, Outcome::Refuse(Duration::from_secs(20)))
        .await?;
    expect("taken", only(&decision)?.taken, 0)?;
    trial.advance_to_just_before(Duration::from_secs(20));
    trial.step("blocked to the last microsecond, with no units left");
    trial.leaves(&[one[0].cost(0)], &[0]).await?;
    trial.advance(MICROSECOND);
    trial.step("not blocked any longer");
    trial.admits(&one).await?;
    Ok(())
}

pub(super) async fn block_grows_and_expires(trial: &mut Trial) -> Verdict {
    let (quota, ann) = (Quota::per_minute(1).fixed_window(), key("ann"));
    let one = [at_once("one", &quota, &ann, 1).penalty(&PENALTY)];
    let never = [at_once("one", &quota, &ann, 2).penalty(&PENALTY)];
    trial.step("three refusals are free");
    for _ in 0..3 {
        trial.gets(&never, Outcome::Never).await?;
    }
    for seconds in [20, 40, 60, 80, 100, 100, 100] {
        trial.step(format!(
            "blocked for {seconds} s after repeated refusals, though nothing was taken"
        ));
        trial.check(&never).await?;
        let mut seen = trial.check(&[one[0].cost(0)]).await?;
        expect("a peek is allowed", seen.is_allowed(), true)?;
        expect(
            "reset after",
            only(&seen)?.reset_after(),
            Duration::from_secs(seconds),
        )?;
        expect("refund", seen.refund().is_some(), true)?;
    }
    trial.step("an attempt before the end adds to it, up to the cap");
    trial.advance(Duration::from_secs(10));
    let retry = retry_after(&trial.check(&one).await?)?;
    expect("retry after", retry, Duration::from_secs(100))?;
    trial.step("after the block the next refusal blocks again");
    trial.advance(Duration::from_secs(100));
    trial.admits(&one).await?;
    trial.check(&never).await?;
    trial.leaves(&[one[0].cost(0)], &[0]).await?;
    trial.step("strikes expire with time");
    trial.advance(Duration::from_secs(80));
    trial.gets(&never, Outcome::Never).await?;
    trial.admits(&one).await?;
    trial.step("a reset removes all strikes");
    for _ in 0..9 {
        trial.check(&never).await?;
    }
    trial.apply(Operation::Reset, &one).await?;
    trial.admits(&one).await?;
    Ok(())
}

pub(super) async fn only_own_refusals_give_strikes(trial: &mut Trial) -> Verdict {
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
    trial.step("the shared limit refuses: no strike for ann");
    trial.check(&both).await?;
    for _ in 0..9 {
        trial.refuses(&both).await?;
    }
    trial.apply(Operation::Refuse, &own).await?;
    trial.step("so ann still has the rest of the units");
    for _ in 0..4 {
        trial.admits(&own).await?;
    }
    trial.step("ann's own limit refuses, also after another limit has refused");
    let retry = retry_after(&trial.check(&own).await?)?;
    for _ in 0..2 {
        let decision = trial.check(&both).await?;
        expect(
            "the wait of ann's limit",
            decision.statuses()[0].outcome,
            Outcome::Refuse(retry),
        )?;
    }
    let decision = trial.apply(Operation::Refuse, &own).await?;
    expect(
        "the wait of ann's limit",
        decision.outcome(),
        Outcome::Refuse(retry.max(Duration::from_secs(20))),
    )?;
    trial.step("charges and refunds give no strike");
    for operation in [
        Operation::Charge,
        Operation::Refund {
            taken_at: trial.now(),
        },
    ] {
        expect_allowed(&trial.apply(operation, &own).await?, true)?;
    }
    trial.step("a shadow penalty is reported and never blocks");
    let shadow = [at_once("shadow", &narrow, &ann, 2)
        .penalty(&PENALTY)
        .shadow()];
    for _ in 0..4 {
        trial.admits(&shadow).await?;
    }
    let decision = trial.check(&[shadow[0].cost(1)]).await?;
    let seen = decision.would_refuse().map(|status| status.outcome).next();
    expect(
        "would refuse",
        seen,
        Some(Outcome::Refuse(Duration::from_secs(40))),
    )
}

pub(super) async fn cost_zero_is_not_blocked(trial: &mut Trial) -> Verdict {
    let (quota, ann) = (Quota::per_hour(10), key("ann"));
    let free = [
        at_once("ten", &quota, &ann, 0).penalty(&PENALTY),
        at_once("other", &quota, &ann, 11),
    ];
    trial.step("refusals of other limits cost nothing of this limit");
    for _ in 0..9 {
        trial.gets(&free, Outcome::Never).await?;
    }
    trial.step("no strike was given");
    trial.admits(&[free[0].cost(1)]).await?;
    trial.step("a blocked client may peek");
    for _ in 0..4 {
        trial.check(&[free[0].cost(11)]).await?;
    }
    trial.refuses(&[free[0].cost(1)]).await?;
    trial.admits(&[free[0]]).await?;
    Ok(())
}

pub(super) async fn reset_clears_strikes(trial: &mut Trial) -> Verdict {
    let (quota, ann) = (Quota::per_minute(1).fixed_window(), key("ann"));
    let one = [at_once("one", &quota, &ann, 1).penalty(&PENALTY)];
    trial.step("ann is blocked");
    for _ in 0..9 {
        trial.check(&[one[0].cost(2)]).await?;
    }
    trial.refuses(&one).await?;
    trial.step("a reset by limit and key, which does not name the penalty");
    trial
        .apply(Operation::Reset, &[at_once("one", &quota, &ann, 1)])
        .await?;
    trial.step("ann is not blocked, and the first refusals are free again");
    trial.admits(&one).await?;
    trial.gets(&[one[0].cost(2)], Outcome::Never).await?;
    Ok(())
}

pub(super) async fn peek_sees_a_block(trial: &mut Trial) -> Verdict {
    let (quota, ann) = (Quota::per_hour(10), key("ann"));
    let one = [at_once("ten", &quota, &ann, 1).penalty(&PENALTY)];
    trial.step("four refusals block ann for a step");
    for _ in 0..4 {
        trial.check(&[one[0].cost(11)]).await?;
    }
    for cost in [0, 1] {
        trial.step(format!("a peek of {cost} reports the end of the block"));
        let peek = trial.apply(Operation::Peek, &[one[0].cost(cost)]).await?;
        expect(
            "outcome",
            peek.outcome(),
            Outcome::Refuse(Duration::from_secs(20)),
        )?;
        expect_remaining(&peek, &[0])?;
    }
    Ok(())
}
