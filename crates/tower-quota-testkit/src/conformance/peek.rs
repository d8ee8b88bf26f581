//! Peeks: what a request would get.

use tower_quota_core::{Operation, Outcome as Answer, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key};
use super::trial::Trial;

pub(super) async fn peek_reports_what_a_request_gets<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        for (taken, left) in [(0, 10), (7, 3), (3, 0)] {
            let step = format!("{name}: {taken} units");
            trial
                .check(&step, &[in_turn("ten", &quota, &ann, taken)])
                .await?;
            for cost in [0, 1, 4, 11] {
                let step = format!("{name}: a peek of {cost} where {left} are left");
                let peek = trial
                    .apply(
                        &step,
                        Operation::Peek,
                        &[at_once("ten", &quota, &ann, cost)],
                    )
                    .await?;
                // A cost of 0 asks for one unit.
                let wanted = cost.max(1);
                let is_never = matches!(peek.outcome(), Answer::Never);
                expect(&step, "never", is_never, wanted > 10)?;
                let queues = name == "leaky bucket" && taken > 0;
                if !is_never && !queues {
                    expect_allowed(&step, &peek, wanted <= left)?;
                }
                expect_remaining(&step, &peek, &[left])?;
                expect(&step, "taken", peek.statuses()[0].taken, 0)?;
            }
        }
    }
    Ok(())
}

pub(super) async fn peek_changes_nothing<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let step = format!("{name}: 4 units");
        trial
            .check(&step, &[in_turn("ten", &quota, &ann, 4)])
            .await?;
        let strict = [at_once("ten", &quota, &ann, 20).count_refusals()];
        let step = format!("{name}: a peek has no refund, and twice the same answer");
        let mut first = trial.apply(&step, Operation::Peek, &strict).await?;
        let second = trial.apply(&step, Operation::Peek, &strict).await?;
        expect(&step, "the second peek", &second, &first)?;
        expect(&step, "refund", first.refund(), None)?;
        let step = format!("{name}: 6 units are left");
        expect_remaining(
            &step,
            &trial
                .check(&step, &[at_once("ten", &quota, &ann, 0)])
                .await?,
            &[6],
        )?;
    }
    Ok(())
}
