//! Quotas that change while counters live.

use std::time::Duration;

use tower_quota_core::{Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, only};
use super::trial::Trial;

pub(super) async fn raised_capacity_keeps_remaining_units<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    // Of another period, so that no window is the same.
    let twenty = Quota::new(20, Duration::from_secs(20));
    for (name, quota) in trial.quotas() {
        let step = format!("{name}: 7 of 10 are taken");
        let ann = key(name);
        trial
            .check(&step, &[in_turn("limit", &quota, &ann, 7)])
            .await?;
        for (other, raised) in [("token bucket", twenty), ("window", twenty.fixed_window())] {
            let step = format!("{name}: under a {other} of 20 the 3 are left");
            expect_remaining(
                &step,
                &trial
                    .check(&step, &[at_once("limit", &raised, &ann, 0)])
                    .await?,
                &[3],
            )?;
            let step = format!("{name}: under a {other} of 20, 4 are too many");
            expect_allowed(
                &step,
                &trial
                    .check(&step, &[at_once("limit", &raised, &ann, 4)])
                    .await?,
                false,
            )?;
        }
        let step = format!("{name}: the last 3 are taken under 20");
        let decision = trial
            .check(&step, &[at_once("limit", &twenty, &ann, 3)])
            .await?;
        expect_remaining(&step, &decision, &[0])?;
        expect(&step, "limit", only(&step, &decision)?.limit, 20)?;
    }
    Ok(())
}

pub(super) async fn raised_window_applies_at_once<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial
        .quotas()
        .into_iter()
        .filter(|(_, quota)| !quota.algorithm().is_bucket())
    {
        let of = |units| {
            Quota::try_new(units, quota.period()).and_then(|of| of.try_algorithm(quota.algorithm()))
        };
        let (Ok(raised), true) = (of(25), quota.window_offset() == Some(0)) else {
            continue;
        };
        let step = format!("{name}: all 10 are taken");
        let ann = key(name);
        trial
            .check(&step, &[in_turn("limit", &quota, &ann, 10)])
            .await?;
        let step = format!("{name}: under 25 units, 15 are left");
        let decision = trial
            .check(&step, &[at_once("limit", &raised, &ann, 15)])
            .await?;
        expect_allowed(&step, &decision, true)?;
        expect_remaining(&step, &decision, &[0])?;
        let step = format!("{name}: under 10 units again, nothing is left");
        expect_allowed(
            &step,
            &trial
                .check(&step, &[at_once("limit", &quota, &ann, 1)])
                .await?,
            false,
        )?;
        let step = format!("{name}: nothing is left under 25 either");
        expect_allowed(
            &step,
            &trial
                .check(&step, &[at_once("limit", &raised, &ann, 1)])
                .await?,
            false,
        )?;
    }
    Ok(())
}

pub(super) async fn alternating_versions_create_no_units<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    let quotas = trial.quotas();
    for (one, old) in &quotas {
        for (other, new) in &quotas {
            let ann = key(&format!("{one} and {other}"));
            let mut admitted = 0;
            for turn in 0..30 {
                let (name, quota) = if turn % 2 == 0 {
                    (one, old)
                } else {
                    (other, new)
                };
                let step = format!("turn {turn}, by a {name}");
                admitted += u32::from(
                    trial
                        .check(&step, &[at_once("limit", quota, &ann, 1)])
                        .await?
                        .is_allowed(),
                );
            }
            let step = format!("a {one} and a {other}, in turn, at one instant");
            // A queue admits at once only what need not wait.
            expect(&step, "at most ten are admitted", admitted <= 10, true)?;
        }
    }
    Ok(())
}

pub(super) async fn lowered_capacity_clamps_remaining_units<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    for (name, quota) in trial.quotas() {
        let step = format!("{name}: 1 of 10 is taken");
        let ann = key(name);
        trial
            .check(&step, &[in_turn("limit", &quota, &ann, 1)])
            .await?;
        for cut in [Quota::per_minute(4), Quota::per_minute(4).sliding_window()] {
            let step = format!(
                "{name}: of the 9 left, 4 are left under a {}",
                cut.algorithm()
            );
            expect_remaining(
                &step,
                &trial
                    .check(&step, &[at_once("limit", &cut, &ann, 0)])
                    .await?,
                &[4],
            )?;
        }
        let step = format!("{name}: 4 are admitted, a fifth is not");
        let cut = Quota::per_minute(4);
        expect_allowed(
            &step,
            &trial
                .check(&step, &[at_once("limit", &cut, &ann, 4)])
                .await?,
            true,
        )?;
        expect_allowed(
            &step,
            &trial
                .check(&step, &[at_once("limit", &cut, &ann, 1)])
                .await?,
            false,
        )?;
    }
    Ok(())
}

pub(super) async fn new_rate_applies_at_once<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let step = format!("{name}: 9 of 10 are taken");
        let ann = key(name);
        trial
            .check(&step, &[in_turn("limit", &quota, &ann, 9)])
            .await?;
        let slow = Quota::new(10, Duration::from_secs(1_000));
        let step = format!("{name}: the last one under a rate of one in 100 s");
        let decision = trial
            .check(&step, &[at_once("limit", &slow, &ann, 1)])
            .await?;
        expect_allowed(&step, &decision, true)?;
        expect(
            &step,
            "reset after",
            only(&step, &decision)?.reset_after(),
            Duration::from_secs(1_000),
        )?;
        trial.advance(Duration::from_secs(250));
        let step = format!("{name}: 2 came back in 250 s");
        expect_remaining(
            &step,
            &trial
                .check(&step, &[at_once("limit", &slow, &ann, 0)])
                .await?,
            &[2],
        )?;
    }
    Ok(())
}

pub(super) async fn two_versions_share_one_counter<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (old, new) = (Quota::per_minute(12), Quota::per_minute(12).burst(24));
    let ann = key("ann");
    for taken in 1..=12 {
        let step = format!("request {taken}, to the old and the new version in turn");
        let quota = if taken % 2 == 0 { &new } else { &old };
        let decision = trial
            .check(&step, &[at_once("limit", quota, &ann, 1)])
            .await?;
        expect_remaining(&step, &decision, &[12 - taken])?;
    }
    for quota in [&old, &new] {
        let step = format!(
            "neither version admits a thirteenth: capacity {}",
            quota.capacity()
        );
        let decision = trial
            .check(&step, &[at_once("limit", quota, &ann, 1)])
            .await?;
        expect(
            &step,
            "retry after",
            decision.retry_after(),
            Some(Duration::from_secs(5)),
        )?;
    }
    Ok(())
}
