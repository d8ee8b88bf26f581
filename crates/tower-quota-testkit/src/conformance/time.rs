//! Time.

use std::time::Duration;

use tower_quota_core::{Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key, only};
use super::trial::Trial;

pub(super) async fn clock_going_backwards_changes_nothing<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let peek = [at_once("ten", &quota, &ann, 0)];
        let step = format!("{name}: 9 units");
        trial
            .check(&step, &[in_turn("ten", &quota, &ann, 9)])
            .await?;
        let then = trial.now();
        let before = trial.check(&step, &peek).await?;
        for back in [1, 1_000_000, 60_000_000] {
            trial.set(tower_quota_core::Timestamp::from_micros(
                then.as_micros() - back,
            ));
            let step = format!("{name}: {back} us earlier it looks the same");
            expect(
                &step,
                "the peek",
                &trial.check(&step, &peek).await?,
                &before,
            )?;
            let step = format!("{name}: {back} us earlier 2 units are still too many");
            expect_allowed(
                &step,
                &trial
                    .check(&step, &[at_once("ten", &quota, &ann, 2)])
                    .await?,
                false,
            )?;
        }
        let step = format!(
            "{name}: a minute earlier the last unit is taken, at the instant of the others"
        );
        let decision = trial
            .check(&step, &[in_turn("ten", &quota, &ann, 1)])
            .await?;
        expect(&step, "the decision's instant", decision.at(), then)?;
        expect_remaining(&step, &decision, &[0])?;
        trial.set(then);
        let step = format!("{name}: back where it was");
        expect_remaining(&step, &trial.check(&step, &peek).await?, &[0])?;
    }
    Ok(())
}

pub(super) async fn entry_from_future_counts_as_missing<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let then = trial.now();
        trial.advance(Duration::from_secs(365 * 86_400));
        let step = format!("{name}: all is taken while the clock is a year ahead");
        trial
            .check(&step, &[in_turn("ten", &quota, &ann, 10)])
            .await?;
        trial.set(then);
        let step = format!("{name}: back in its own time, the client is not locked out for a year");
        let decision = trial
            .check(&step, &[in_turn("ten", &quota, &ann, 4)])
            .await?;
        expect(&step, "the decision's instant", decision.at(), then)?;
        expect_remaining(&step, &decision, &[6])?;
        trial.advance(Duration::from_secs(60));
    }
    Ok(())
}

pub(super) async fn full_entry_equals_missing_entry<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (old, new) = (key(&format!("old, {name}")), key(&format!("new, {name}")));
        let ask = |who, cost| [in_turn("ten", &quota, who, cost)];
        let step = format!("{name}: all is taken");
        let spent = trial.check(&step, &ask(&old, 10)).await?;
        for wait in [
            only(&step, &spent)?.reset_after(),
            Duration::from_secs(400 * 86_400),
        ] {
            trial.advance(wait);
            let step = format!("{name}: after {wait:?} it is as if never seen");
            let seen = trial.check(&step, &ask(&old, 0)).await?;
            let fresh = trial.check(&step, &ask(&new, 0)).await?;
            expect(&step, "the peek", &seen, &fresh)?;
            expect_remaining(&step, &seen, &[10])?;
        }
        let step = format!("{name}: and counts from there");
        let seen = trial.check(&step, &ask(&old, 4)).await?;
        expect(
            &step,
            "the decision",
            &seen,
            &trial.check(&step, &ask(&new, 4)).await?,
        )?;
    }
    Ok(())
}

pub(super) async fn earlier_window_is_still_read<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (quota, ann) = (Quota::per_minute(10).sliding_window(), key("ann"));
    let step = "10 units in the last second of a window";
    trial.advance(Duration::from_secs(59));
    trial
        .check(step, &[at_once("ten", &quota, &ann, 10)])
        .await?;
    for (wait, left) in [(1, 0), (30, 5), (29, 9), (1, 10)] {
        trial.advance(Duration::from_secs(wait));
        let step = format!("{left} are left after another {wait} s");
        expect_remaining(
            &step,
            &trial
                .check(&step, &[at_once("ten", &quota, &ann, 0)])
                .await?,
            &[left],
        )?;
    }
    Ok(())
}

pub(super) async fn windows_are_aligned<S: Store>(trial: &mut Trial<S>) -> Outcome {
    // The clock starts at midnight UTC; each request comes at half past one.
    const HOUR: Duration = Duration::from_secs(3_600);
    let day = Quota::per_day(10).fixed_window();
    trial.advance(HOUR + HOUR / 2);
    let cases = [
        ("from midnight", day, HOUR * 45 / 2),
        ("from six", day.offset(HOUR * 6), HOUR * 9 / 2),
        ("from one", day.offset(HOUR), HOUR * 47 / 2),
        (
            "from the first request",
            day.from_first_request(),
            HOUR * 24,
        ),
    ];
    for (name, quota, ends_in) in cases {
        let ann = key(name);
        let step = format!("a day {name}");
        let decision = trial
            .check(&step, &[at_once("day", &quota, &ann, 10)])
            .await?;
        expect(
            &step,
            "reset after",
            only(&step, &decision)?.reset_after(),
            ends_in,
        )?;
        let decision = trial
            .check(&step, &[at_once("day", &quota, &ann, 1)])
            .await?;
        expect(&step, "retry after", decision.retry_after(), Some(ends_in))?;
    }
    Ok(())
}
