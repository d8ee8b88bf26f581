//! Tests shadow limits, which are reported but never enforced.

use std::time::Duration;

use tower_quota_core::{Decision, Outcome, Quota};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_binding, expect_remaining, in_turn, key};
use super::trial::Trial;

const WIDE: Quota = Quota::per_hour(100).fixed_window();

fn would_refuse(decision: &Decision) -> Vec<&str> {
    decision
        .would_refuse()
        .map(|status| status.name.as_str())
        .collect()
}

fn taken(decision: &Decision) -> Vec<u64> {
    decision
        .statuses()
        .iter()
        .map(|status| status.taken)
        .collect()
}

pub(super) async fn shadow_never_refuses(trial: &mut Trial, ten: &Sample) -> Verdict {
    let ask = |cost| {
        [
            at_once("real", &WIDE, &ten.key, 1),
            at_once("dry", &ten.quota, &ten.key, cost).shadow(),
        ]
    };
    trial.step("10 units of a shadow");
    let decision = trial
        .gets(
            &[ask(1)[0], in_turn("dry", &ten.quota, &ten.key, 10).shadow()],
            Outcome::Allow,
        )
        .await?;
    expect("taken", taken(&decision), vec![1, 10])?;
    expect("would refuse", would_refuse(&decision), vec![])?;
    trial.step("one more would be refused, and passes");
    let mut decision = trial.gets(&ask(1), Outcome::Allow).await?;
    expect("would refuse", would_refuse(&decision), vec!["dry"])?;
    expect("taken", taken(&decision), vec![1, 0])?;
    expect_binding(&decision, "real")?;
    expect_remaining(&decision, &[98, 0])?;
    trial.step("its units can be refunded");
    if let Some(refund) = decision.refund() {
        let [real, dry] = ask(1);
        expect_remaining(&trial.apply(refund, &[real, dry.cost(0)]).await?, &[99, 0])?;
    }
    trial.step("more than it ever holds passes too");
    let decision = trial.gets(&ask(11), Outcome::Allow).await?;
    expect("would refuse", would_refuse(&decision), vec!["dry"])
}

pub(super) async fn shadow_is_taken_with_the_others(trial: &mut Trial) -> Verdict {
    let (real, dry, ann, bob) = (
        Quota::per_minute(1),
        Quota::per_hour(10),
        key("ann"),
        key("bob"),
    );
    let both = [
        at_once("real", &real, &ann, 1),
        at_once("dry", &dry, &bob, 1).shadow(),
    ];
    trial.step("both fit");
    trial.leaves(&both, &[0, 9]).await?;
    trial.step("the enforced one refuses: nothing is taken of the shadow");
    let decision = trial.refuses(&both).await?;
    expect_remaining(&decision, &[0, 9])?;
    trial.step("a shadow that counts refusals counts this one");
    let counting = [both[0], both[1].count_refusals()];
    let decision = trial.check(&counting).await?;
    expect_remaining(&decision, &[0, 8])?;
    expect("taken", taken(&decision), vec![0, 0])
}

pub(super) async fn shadow_hides_no_refusal(trial: &mut Trial) -> Verdict {
    let (minute, hour, ann) = (Quota::per_minute(1), Quota::per_hour(1), key("ann"));
    let both = [
        at_once("hour", &hour, &ann, 1).shadow(),
        at_once("minute", &minute, &ann, 1),
    ];
    trial.step("both are spent");
    trial.admits(&both).await?;
    trial.step("both report it, and the wait is that of the enforced one");
    let decision = trial
        .gets(&both, Outcome::Refuse(Duration::from_secs(60)))
        .await?;
    expect_binding(&decision, "minute")?;
    expect("would refuse", would_refuse(&decision), vec!["hour"])?;
    let enforced: Vec<_> = decision
        .enforced()
        .map(|status| status.name.as_str())
        .collect();
    expect("enforced", enforced, vec!["minute"])
}
