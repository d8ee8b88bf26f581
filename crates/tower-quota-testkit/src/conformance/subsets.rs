//! Tests requests with some of a key's limits, in any order.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{at_once, expect_remaining, key};
use super::trial::Trial;

const NAMES: [&str; 4] = ["second", "minute", "hour", "login"];
const QUOTAS: [Quota; 4] = [
    Quota::per_second(20),
    Quota::per_minute(30).gcra(),
    Quota::per_hour(40).sliding_window(),
    Quota::per_hour(5),
];

fn charges<'a>(ann: &'a Key<'a>, limits: &[usize], cost: u64) -> Vec<Charge<'a>> {
    limits
        .iter()
        .map(|&limit| at_once(NAMES[limit], &QUOTAS[limit], ann, cost))
        .collect()
}

pub(super) async fn subsets_and_orders_share_the_counters(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let mut taken = [0; 4];
    let asked: [&[usize]; 8] = [
        &[0, 1, 2],
        &[3, 0, 1, 2],
        &[2, 1, 0],
        &[1],
        &[3, 0],
        &[0, 1, 2],
        &[3, 2, 1, 0],
        &[2, 3],
    ];
    for limits in asked {
        trial.step(format!("one unit of {limits:?}"));
        limits.iter().for_each(|&limit| taken[limit] += 1);
        let decision = trial.admits(&charges(&ann, limits, 1)).await?;
        let left: Vec<u64> = limits
            .iter()
            .map(|&limit| QUOTAS[limit].capacity() - taken[limit])
            .collect();
        expect_remaining(&decision, &left)?;
    }
    trial.step("the login limit is spent, and refuses whatever else is asked");
    trial.check(&charges(&ann, &[3], 1)).await?;
    trial.refuses(&charges(&ann, &[0, 1, 2, 3], 1)).await?;
    trial.step("without it, the others admit");
    trial.admits(&charges(&ann, &[2, 0, 1], 1)).await?;
    Ok(())
}

pub(super) async fn unasked_limits_keep_their_time(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    trial.step("all of login is taken");
    trial.check(&charges(&ann, &[0, 3], 5)).await?;
    for minute in 1..=12 {
        trial.advance(Duration::from_secs(60));
        trial.step(format!("minute {minute}: only the others are asked"));
        trial.admits(&charges(&ann, &[1, 0], 1)).await?;
    }
    trial.step("one of the five came back in twelve minutes");
    trial.leaves(&charges(&ann, &[3], 0), &[1]).await?;
    trial.step("all have come back in an hour, whatever was asked meanwhile");
    trial.advance(Duration::from_secs(48 * 60));
    trial.check(&charges(&ann, &[1], 1)).await?;
    let decision = trial.check(&charges(&ann, &[3, 1, 0], 0)).await?;
    expect("remaining", decision.statuses()[0].remaining(), 5)
}
