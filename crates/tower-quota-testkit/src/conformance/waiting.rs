//! Tests requests that wait instead of being refused.

use std::time::Duration;

use tower_quota_core::{Charge, Outcome, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{at_once, expect_remaining, key};
use super::trial::Trial;

const FIVE_PLACES: Quota = Quota::per_second(10).leaky_bucket().queue(5);

pub(super) async fn turns_are_evenly_spaced(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let next = [Charge::new("queue", &FIVE_PLACES, &ann)];
    for place in 0..5_u32 {
        trial.step(format!("place {place} of the queue"));
        let decision = trial.check(&next).await?;
        expect("wait", decision.wait(), Duration::from_millis(100) * place)?;
        expect_remaining(&decision, &[4 - u64::from(place)])?;
    }
    trial.step("the queue is full");
    trial
        .gets(&next, Outcome::Refuse(Duration::from_millis(100)))
        .await?;
    trial.advance(Duration::from_millis(250));
    trial.step("two and a half turns later there are two places, behind three");
    expect(
        "wait",
        trial.check(&next).await?.wait(),
        Duration::from_millis(250),
    )?;
    expect(
        "wait",
        trial.check(&next).await?.wait(),
        Duration::from_millis(350),
    )?;
    trial.refuses(&next).await?;
    Ok(())
}

pub(super) async fn max_wait_bounds_the_wait(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let waiting_up_to =
        |millis| [Charge::new("queue", &FIVE_PLACES, &ann).max_wait(Duration::from_millis(millis))];
    trial.step("three places are taken");
    trial
        .check(&[Charge::new("queue", &FIVE_PLACES, &ann).cost(3)])
        .await?;
    trial.step("a turn in 300 ms is too late for a request that waits 299");
    let decision = trial
        .gets(
            &waiting_up_to(299),
            Outcome::Refuse(Duration::from_millis(1)),
        )
        .await?;
    trial.step("it took no place");
    expect_remaining(&decision, &[2])?;
    trial.step("it is soon enough for one that waits 300");
    trial
        .gets(
            &waiting_up_to(300),
            Outcome::Wait(Duration::from_millis(300)),
        )
        .await?;
    Ok(())
}

pub(super) async fn bucket_can_make_requests_wait(trial: &mut Trial) -> Verdict {
    for (name, quota) in [
        ("token bucket", Quota::per_second(10).burst(5)),
        ("gcra", Quota::per_second(10).burst(5).gcra()),
    ] {
        let ann = key(name);
        let waiting_up_to = |cost, millis| {
            [at_once("limit", &quota, &ann, cost).max_wait(Duration::from_millis(millis))]
        };
        trial.step(format!("{name}: 4 of 5 at once"));
        trial.gets(&waiting_up_to(4, 1_000), Outcome::Allow).await?;
        trial.step(format!(
            "{name}: 3 more would be there in 200 ms, too late for 199"
        ));
        trial
            .gets(
                &waiting_up_to(3, 199),
                Outcome::Refuse(Duration::from_millis(1)),
            )
            .await?;
        trial.step(format!(
            "{name}: soon enough for 200, and taken ahead of time"
        ));
        let decision = trial
            .gets(
                &waiting_up_to(3, 200),
                Outcome::Wait(Duration::from_millis(200)),
            )
            .await?;
        expect_remaining(&decision, &[0])?;
        trial.step(format!("{name}: the next has to wait behind it"));
        trial
            .gets(
                &waiting_up_to(1, 1_000),
                Outcome::Wait(Duration::from_millis(300)),
            )
            .await?;
    }
    for quota in [
        Quota::per_second(5).fixed_window(),
        Quota::per_second(5).sliding_log(),
    ] {
        trial.step(format!(
            "a {} never makes a request wait",
            quota.algorithm()
        ));
        let ann = key(&format!("{:?}", quota.algorithm()));
        let ask = [at_once("limit", &quota, &ann, 5).max_wait(Duration::MAX)];
        trial.gets(&ask, Outcome::Allow).await?;
        trial.refuses(&ask).await?;
    }
    Ok(())
}
