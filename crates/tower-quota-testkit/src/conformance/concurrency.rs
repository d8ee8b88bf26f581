//! Tests many requests at once.

use futures_util::future::join_all;
use tower_quota_core::{Charge, Quota, Store};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, in_turn, key};
use super::trial::Trial;

const AT_ONCE: usize = 40;

async fn admitted(trial: &Trial, charges: &[Charge<'_>]) -> Result<usize, String> {
    let decided = (0..AT_ONCE).map(|_| trial.store().check(charges));
    let mut count = 0;
    for decision in join_all(decided).await {
        let decision = decision.map_err(|error| format!("the store failed: {error}"))?;
        count += usize::from(decision.is_allowed());
    }
    Ok(count)
}

pub(super) async fn concurrent_checks_admit_the_quota(trial: &mut Trial, ten: &Sample) -> Verdict {
    for (cost, fit) in [(1, 10), (3, 3)] {
        trial.step(format!("{AT_ONCE} requests of {cost} at once"));
        let busy = Sample::new(format!("{ten}, cost {cost}"), ten.quota);
        let charge = [busy.in_turn(cost)];
        expect("admitted", admitted(trial, &charge).await?, fit)?;
    }
    Ok(())
}

pub(super) async fn concurrent_checks_admit_the_tightest(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    trial.step(format!(
        "{AT_ONCE} requests at once, of 10 for the key and 25 for everyone"
    ));
    let everyone = key(&format!("everyone, {ten}"));
    let wide = Quota::per_hour(25).fixed_window();
    for (client, fit) in [("ann", 10), ("bob", 10), ("cid", 5)] {
        let own = key(&format!("{client}, {ten}"));
        let both = [
            in_turn("ten", &ten.quota, &own, 1),
            at_once("everyone", &wide, &everyone, 1),
        ];
        expect("admitted", admitted(trial, &both).await?, fit)?;
    }
    Ok(())
}
