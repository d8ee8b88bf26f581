//! Tests peeks, which report the decision for a request.

use tower_quota_core::{Operation, Outcome};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, expect_allowed, expect_remaining};
use super::trial::Trial;

pub(super) async fn peek_reports_what_a_request_gets(trial: &mut Trial, ten: &Sample) -> Verdict {
    for (taken, left) in [(0, 10), (7, 3), (3, 0)] {
        trial.step(format!("{taken} units"));
        trial.check(&[ten.in_turn(taken)]).await?;
        for cost in [0, 1, 4, 11] {
            trial.step(format!("a peek of {cost} where {left} are left"));
            let peek = trial.apply(Operation::Peek, &[ten.at_once(cost)]).await?;
            // A peek with a cost of 0 reports a request of one unit.
            let wanted = cost.max(1);
            let is_never = matches!(peek.outcome(), Outcome::Never);
            expect("never", is_never, wanted > 10)?;
            let queues = ten.name == "leaky bucket" && taken > 0;
            if !is_never && !queues {
                expect_allowed(&peek, wanted <= left)?;
            }
            expect_remaining(&peek, &[left])?;
            expect("taken", peek.statuses()[0].taken, 0)?;
        }
    }
    Ok(())
}

pub(super) async fn peek_changes_nothing(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("4 units");
    trial.check(&[ten.in_turn(4)]).await?;
    let strict = [ten.at_once(20).count_refusals()];
    trial.step("a peek has no refund, and twice the same answer");
    let mut first = trial.apply(Operation::Peek, &strict).await?;
    let second = trial.apply(Operation::Peek, &strict).await?;
    expect("the second peek", &second, &first)?;
    expect("refund", first.refund(), None)?;
    trial.step("6 units are left");
    trial.leaves(&[ten.at_once(0)], &[6]).await
}
