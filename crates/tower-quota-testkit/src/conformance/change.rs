//! Quotas that change while counters live.

use std::time::Duration;

use tower_quota_core::Quota;

use super::Verdict;
use super::failure::expect;
use super::samples::{at_once, expect_remaining, in_turn, key, only};
use super::trial::Trial;

pub(super) async fn raised_capacity_keeps_remaining_units(trial: &mut Trial) -> Verdict {
    // Of another period, so that no window is the same.
    let twenty = Quota::new(20, Duration::from_secs(20));
    for (name, quota) in trial.quotas() {
        trial.step(format!("{name}: 7 of 10 are taken"));
        let ann = key(name);
        trial.check(&[in_turn("limit", &quota, &ann, 7)]).await?;
        for (other, raised) in [("token bucket", twenty), ("window", twenty.fixed_window())] {
            trial.step(format!("{name}: under a {other} of 20 the 3 are left"));
            trial
                .leaves(&[at_once("limit", &raised, &ann, 0)], &[3])
                .await?;
            trial.step(format!("{name}: under a {other} of 20, 4 are too many"));
            trial.refuses(&[at_once("limit", &raised, &ann, 4)]).await?;
        }
        trial.step(format!("{name}: the last 3 are taken under 20"));
        let decision = trial.check(&[at_once("limit", &twenty, &ann, 3)]).await?;
        expect_remaining(&decision, &[0])?;
        expect("limit", only(&decision)?.limit, 20)?;
    }
    Ok(())
}

pub(super) async fn raised_window_applies_at_once(trial: &mut Trial) -> Verdict {
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
        trial.step(format!("{name}: all 10 are taken"));
        let ann = key(name);
        trial.check(&[in_turn("limit", &quota, &ann, 10)]).await?;
        trial.step(format!("{name}: under 25 units, 15 are left"));
        let decision = trial.admits(&[at_once("limit", &raised, &ann, 15)]).await?;
        expect_remaining(&decision, &[0])?;
        trial.step(format!("{name}: under 10 units again, nothing is left"));
        trial.refuses(&[at_once("limit", &quota, &ann, 1)]).await?;
        trial.step(format!("{name}: nothing is left under 25 either"));
        trial.refuses(&[at_once("limit", &raised, &ann, 1)]).await?;
    }
    Ok(())
}

pub(super) async fn alternating_versions_create_no_units(trial: &mut Trial) -> Verdict {
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
                trial.step(format!("turn {turn}, by a {name}"));
                admitted += u32::from(
                    trial
                        .check(&[at_once("limit", quota, &ann, 1)])
                        .await?
                        .is_allowed(),
                );
            }
            trial.step(format!("a {one} and a {other}, in turn, at one instant"));
            // A queue admits at once only what need not wait.
            expect("at most ten are admitted", admitted <= 10, true)?;
        }
    }
    Ok(())
}

pub(super) async fn lowered_capacity_clamps_remaining_units(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        trial.step(format!("{name}: 1 of 10 is taken"));
        let ann = key(name);
        trial.check(&[in_turn("limit", &quota, &ann, 1)]).await?;
        for cut in [Quota::per_minute(4), Quota::per_minute(4).sliding_window()] {
            trial.step(format!(
                "{name}: of the 9 left, 4 are left under a {}",
                cut.algorithm()
            ));
            trial
                .leaves(&[at_once("limit", &cut, &ann, 0)], &[4])
                .await?;
        }
        trial.step(format!("{name}: 4 are admitted, a fifth is not"));
        let cut = Quota::per_minute(4);
        trial.admits(&[at_once("limit", &cut, &ann, 4)]).await?;
        trial.refuses(&[at_once("limit", &cut, &ann, 1)]).await?;
    }
    Ok(())
}

pub(super) async fn new_rate_applies_at_once(trial: &mut Trial) -> Verdict {
    for (name, quota) in trial.quotas() {
        trial.step(format!("{name}: 9 of 10 are taken"));
        let ann = key(name);
        trial.check(&[in_turn("limit", &quota, &ann, 9)]).await?;
        let slow = Quota::new(10, Duration::from_secs(1_000));
        trial.step(format!("{name}: the last one under a rate of one in 100 s"));
        let decision = trial.admits(&[at_once("limit", &slow, &ann, 1)]).await?;
        expect(
            "reset after",
            only(&decision)?.reset_after(),
            Duration::from_secs(1_000),
        )?;
        trial.advance(Duration::from_secs(250));
        trial.step(format!("{name}: 2 came back in 250 s"));
        trial
            .leaves(&[at_once("limit", &slow, &ann, 0)], &[2])
            .await?;
    }
    Ok(())
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
        let decision = trial.check(&[at_once("limit", quota, &ann, 1)]).await?;
        expect(
            "retry after",
            decision.retry_after(),
            Some(Duration::from_secs(5)),
        )?;
    }
    Ok(())
}
