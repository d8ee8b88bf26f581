//! Requests that wait instead of being refused.

use std::time::Duration;

use tower_quota_core::{Charge, Outcome as Answer, Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, key};
use super::trial::Trial;

const FIVE_PLACES: Quota = Quota::per_second(10).leaky_bucket().queue(5);

pub(super) async fn turns_are_evenly_spaced<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let next = [Charge::new("queue", &FIVE_PLACES, &ann)];
    for place in 0..5_u32 {
        let step = format!("place {place} of the queue");
        let decision = trial.check(&step, &next).await?;
        expect(
            &step,
            "wait",
            decision.wait(),
            Duration::from_millis(100) * place,
        )?;
        expect_remaining(&step, &decision, &[4 - u64::from(place)])?;
    }
    let step = "the queue is full";
    let decision = trial.check(step, &next).await?;
    expect(
        step,
        "outcome",
        decision.outcome(),
        Answer::Refuse(Duration::from_millis(100)),
    )?;
    trial.advance(Duration::from_millis(250));
    let step = "two and a half turns later there are two places, behind three";
    expect(
        step,
        "wait",
        trial.check(step, &next).await?.wait(),
        Duration::from_millis(250),
    )?;
    expect(
        step,
        "wait",
        trial.check(step, &next).await?.wait(),
        Duration::from_millis(350),
    )?;
    expect_allowed(step, &trial.check(step, &next).await?, false)
}

pub(super) async fn max_wait_bounds_the_wait<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let waiting_up_to =
        |millis| [Charge::new("queue", &FIVE_PLACES, &ann).max_wait(Duration::from_millis(millis))];
    let step = "three places are taken";
    trial
        .check(step, &[Charge::new("queue", &FIVE_PLACES, &ann).cost(3)])
        .await?;
    let step = "a turn in 300 ms is too late for a request that waits 299";
    let decision = trial.check(step, &waiting_up_to(299)).await?;
    expect(
        step,
        "outcome",
        decision.outcome(),
        Answer::Refuse(Duration::from_millis(1)),
    )?;
    let step = "it took no place";
    expect_remaining(step, &decision, &[2])?;
    let step = "it is soon enough for one that waits 300";
    let decision = trial.check(step, &waiting_up_to(300)).await?;
    expect(
        step,
        "outcome",
        decision.outcome(),
        Answer::Wait(Duration::from_millis(300)),
    )
}

pub(super) async fn bucket_can_make_requests_wait<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in [
        ("token bucket", Quota::per_second(10).burst(5)),
        ("gcra", Quota::per_second(10).burst(5).gcra()),
    ] {
        let ann = key(name);
        let waiting_up_to = |cost, millis| {
            [at_once("limit", &quota, &ann, cost).max_wait(Duration::from_millis(millis))]
        };
        let step = format!("{name}: 4 of 5 at once");
        expect(
            &step,
            "outcome",
            trial
                .check(&step, &waiting_up_to(4, 1_000))
                .await?
                .outcome(),
            Answer::Allow,
        )?;
        let step = format!("{name}: 3 more would be there in 200 ms, too late for 199");
        let decision = trial.check(&step, &waiting_up_to(3, 199)).await?;
        expect(
            &step,
            "outcome",
            decision.outcome(),
            Answer::Refuse(Duration::from_millis(1)),
        )?;
        let step = format!("{name}: soon enough for 200, and taken ahead of time");
        let decision = trial.check(&step, &waiting_up_to(3, 200)).await?;
        expect(
            &step,
            "outcome",
            decision.outcome(),
            Answer::Wait(Duration::from_millis(200)),
        )?;
        expect_remaining(&step, &decision, &[0])?;
        let step = format!("{name}: the next has to wait behind it");
        let decision = trial.check(&step, &waiting_up_to(1, 1_000)).await?;
        expect(
            &step,
            "outcome",
            decision.outcome(),
            Answer::Wait(Duration::from_millis(300)),
        )?;
    }
    for quota in [
        Quota::per_second(5).fixed_window(),
        Quota::per_second(5).sliding_log(),
    ] {
        let step = format!("a {} never makes a request wait", quota.algorithm());
        let ann = key(&step);
        let ask = [at_once("limit", &quota, &ann, 5).max_wait(Duration::MAX)];
        expect(
            &step,
            "outcome",
            trial.check(&step, &ask).await?.outcome(),
            Answer::Allow,
        )?;
        expect_allowed(&step, &trial.check(&step, &ask).await?, false)?;
    }
    Ok(())
}
