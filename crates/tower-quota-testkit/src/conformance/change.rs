//! Tests quotas that change while counters exist.

use std::time::Duration;

use tower_quota_core::{Outcome, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_remaining, key, only};
use super::trial::Trial;

pub(super) async fn raised_capacity_keeps_remaining_units(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    // Use another period, so that no window is the same.
    let twenty = Quota::new(20, Duration::from_secs(20));
    trial.step("7 of 10 are taken");
    trial.check(&[ten.in_turn(7)]).await?;
    for (other, raised) in [("token bucket", twenty), ("window", twenty.fixed_window())] {
        trial.step(format!("under a {other} of 20 the 3 are left"));
        trial
            .leaves(&[at_once("ten", &raised, &ten.key, 0)], &[3])
            .await?;
        trial.step(format!("under a {other} of 20, 4 are too many"));
        trial
            .refuses(&[at_once("ten", &raised, &ten.key, 4)])
            .await?;
    }
    trial.step("the last 3 are taken under 20");
    let decision = trial.check(&[at_once("ten", &twenty, &ten.key, 3)]).await?;
    expect_remaining(&decision, &[0])?;
    expect("limit", only(&decision)?.limit, 20)
}

pub(super) async fn raised_window_applies_at_once(trial: &mut Trial, ten: &Sample) -> Verdict {
    let raised = Quota::new(25, ten.quota.period()).try_algorithm(ten.quota.algorithm());
    let (false, Some(0), Ok(raised)) = (
        ten.quota.algorithm().is_bucket(),
        ten.quota.window_offset(),
        raised,
    ) else {
        return Ok(());
    };
    trial.step("all 10 are taken");
    trial.check(&[ten.in_turn(10)]).await?;
    trial.step("under 25 units, 15 are left");
    let decision = trial
        .admits(&[at_once("ten", &raised, &ten.key, 15)])
        .await?;
    expect_remaining(&decision, &[0])?;
    trial.step("under 10 units again, nothing is left");
    trial.refuses(&[ten.at_once(1)]).await?;
    trial.step("nothing is left under 25 either");
    trial
        .refuses(&[at_once("ten", &raised, &ten.key, 1)])
        .await?;
    Ok(())
}

pub(super) async fn alternating_versions_create_no_units(trial: &mut Trial) -> Verdict {
    let samples = trial.samples();
    for one in &samples {
        for other in &samples {
            let ann = key(&format!("{one} and {other}"));
            let mut admitted = 0;
            for turn in 0..30 {
                let ten = if turn % 2 == 0 { one } else { other };
                trial.step(format!("turn {turn}, by a {ten}"));
                let decision = trial.check(&[at_once("ten", &ten.quota, &ann, 1)]).await?;
                admitted += u32::from(decision.is_allowed());
            }
            trial.step(format!("a {one} and a {other}, in turn, at one instant"));
            // A queue may admit fewer at once, because other requests would wait.
            expect("at most ten are admitted", admitted <= 10, true)?;
        }
    }
    Ok(())
}

pub(super) async fn lowered_capacity_clamps_remaining_units(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    trial.step("1 of 10 is taken");
    trial.check(&[ten.in_turn(1)]).await?;
    for cut in [Quota::per_minute(4), Quota::per_minute(4).sliding_window()] {
        trial.step(format!(
            "of the 9 left, 4 are left under a {}",
            cut.algorithm()
        ));
        trial
            .leaves(&[at_once("ten", &cut, &ten.key, 0)], &[4])
            .await?;
    }
    trial.step("4 are admitted, a fifth is not");
    let cut = Quota::per_minute(4);
    trial.admits(&[at_once("ten", &cut, &ten.key, 4)]).await?;
    trial.refuses(&[at_once("ten", &cut, &ten.key, 1)]).await?;
    Ok(())
}

pub(super) async fn new_rate_applies_at_once(trial: &mut Trial, ten: &Sample) -> Verdict {
    trial.step("9 of 10 are taken");
    trial.check(&[ten.in_turn(9)]).await?;
    let slow = Quota::new(10, Duration::from_secs(1_000));
    trial.step("the last one under a rate of one in 100 s");
    let decision = trial.admits(&[at_once("ten", &slow, &ten.key, 1)]).await?;
    expect(
        "reset after",
        only(&decision)?.reset_after(),
        Duration::from_secs(1_000),
    )?;
    trial.advance(Duration::from_secs(250));
    trial.step("2 came back in 250 s");
    trial
        .leaves(&[at_once("ten", &slow, &ten.key, 0)], &[2])
        .await
}

pub(super) async fn two_versions_share_one_counter(trial: &mut Trial) -> Verdict {
    let (old, new) = (Quota::per_minute(12), Quota::per_minute(12).burst(24));
    let ann = key("ann");
    for taken in 1..=12 {
        trial.step(format!(
            "request {taken}, to the old and the new version in turn"
        ));
        let quota = if taken % 2 == 0 { &new } else { &old };
        trial
            .leaves(&[at_once("limit", quota, &ann, 1)], &[12 - taken])
            .await?;
    }
    for quota in [&old, &new] {
        trial.step(format!(
            "neither version admits a thirteenth: capacity {}",
            quota.capacity()
        ));
        trial
            .gets(
                &[at_once("limit", quota, &ann, 1)],
                Outcome::Refuse(Duration::from_secs(5)),
            )
            .await?;
    }
    Ok(())
}
