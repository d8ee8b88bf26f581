//! Tests clocks and windows.

use std::time::Duration;

use tower_quota_core::{Outcome, Quota, Timestamp};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_remaining, in_turn, key, only};
use super::trial::Trial;

pub(super) async fn clock_going_backwards_changes_nothing(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    let peek = [ten.at_once(0)];
    trial.step("9 units");
    trial.check(&[ten.in_turn(9)]).await?;
    let then = trial.now();
    let before = trial.check(&peek).await?;
    for back in [1, 1_000_000, 60_000_000] {
        trial.set(Timestamp::from_micros(then.as_micros() - back));
        trial.step(format!("{back} us earlier it looks the same"));
        expect("the peek", &trial.check(&peek).await?, &before)?;
        trial.step(format!("{back} us earlier 2 units are still too many"));
        trial.refuses(&[ten.at_once(2)]).await?;
    }
    trial.step("a minute earlier the last unit is taken, at the instant of the others");
    let decision = trial.check(&[ten.in_turn(1)]).await?;
    expect("the decision's instant", decision.at(), then)?;
    expect_remaining(&decision, &[0])?;
    trial.set(then);
    trial.step("back where it was");
    trial.leaves(&peek, &[0]).await
}

pub(super) async fn entry_from_future_counts_as_missing(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    let then = trial.now();
    trial.advance(Duration::from_secs(365 * 86_400));
    trial.step("all is taken while the clock is a year ahead");
    trial.check(&[ten.in_turn(10)]).await?;
    trial.set(then);
    trial.step("back in its own time, the client is not locked out for a year");
    let decision = trial.check(&[ten.in_turn(4)]).await?;
    expect("the decision's instant", decision.at(), then)?;
    expect_remaining(&decision, &[6])?;
    trial.advance(Duration::from_secs(60));
    Ok(())
}

pub(super) async fn full_entry_equals_missing_entry(trial: &mut Trial, ten: &Sample) -> Verdict {
    let (old, new) = (key(&format!("old, {ten}")), key(&format!("new, {ten}")));
    let ask = |who, cost| [in_turn("ten", &ten.quota, who, cost)];
    trial.step("all is taken");
    let spent = trial.check(&ask(&old, 10)).await?;
    for wait in [
        only(&spent)?.reset_after(),
        Duration::from_secs(400 * 86_400),
    ] {
        trial.advance(wait);
        trial.step(format!("after {wait:?} it is as if never seen"));
        let seen = trial.check(&ask(&old, 0)).await?;
        let fresh = trial.check(&ask(&new, 0)).await?;
        expect("the peek", &seen, &fresh)?;
        expect_remaining(&seen, &[10])?;
    }
    trial.step("and counts from there");
    let seen = trial.check(&ask(&old, 4)).await?;
    expect("the decision", &seen, &trial.check(&ask(&new, 4)).await?)
}

pub(super) async fn earlier_window_is_still_read(trial: &mut Trial) -> Verdict {
    let (quota, ann) = (Quota::per_minute(10).sliding_window(), key("ann"));
    trial.step("10 units in the last second of a window");
    trial.advance(Duration::from_secs(59));
    trial.check(&[at_once("ten", &quota, &ann, 10)]).await?;
    for (wait, left) in [(1, 0), (30, 5), (29, 9), (1, 10)] {
        trial.advance(Duration::from_secs(wait));
        trial.step(format!("{left} are left after another {wait} s"));
        trial
            .leaves(&[at_once("ten", &quota, &ann, 0)], &[left])
            .await?;
    }
    Ok(())
}

pub(super) async fn windows_are_aligned(trial: &mut Trial) -> Verdict {
    // The clock starts at midnight UTC, and each request comes at half past one.
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
        trial.step(format!("a day {name}"));
        let decision = trial.check(&[at_once("day", &quota, &ann, 10)]).await?;
        expect("reset after", only(&decision)?.reset_after(), ends_in)?;
        trial
            .gets(&[at_once("day", &quota, &ann, 1)], Outcome::Refuse(ends_in))
            .await?;
    }
    Ok(())
}
