//! Limits that are reported and not enforced.

use std::time::Duration;

use tower_quota_core::{Decision, Name, Outcome as Answer, Quota, Store};

use super::Outcome;
use super::failure::expect;
use super::samples::{at_once, expect_allowed, expect_remaining, in_turn, key};
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

pub(super) async fn shadow_never_refuses<S: Store>(trial: &mut Trial<S>) -> Outcome {
    for (name, quota) in trial.quotas() {
        let ann = key(name);
        let ask = |cost| {
            [
                at_once("real", &WIDE, &ann, 1),
                at_once("dry", &quota, &ann, cost).shadow(),
            ]
        };
        let step = format!("{name}: 10 units of a shadow");
        let decision = trial
            .check(
                &step,
                &[ask(1)[0], in_turn("dry", &quota, &ann, 10).shadow()],
            )
            .await?;
        expect(&step, "outcome", decision.outcome(), Answer::Allow)?;
        expect(&step, "taken", taken(&decision), vec![1, 10])?;
        expect(&step, "would refuse", would_refuse(&decision), vec![])?;
        let step = format!("{name}: one more would be refused, and passes");
        let mut decision = trial.check(&step, &ask(1)).await?;
        expect(&step, "outcome", decision.outcome(), Answer::Allow)?;
        expect(&step, "would refuse", would_refuse(&decision), vec!["dry"])?;
        expect(&step, "taken", taken(&decision), vec![1, 0])?;
        expect(
            &step,
            "binding",
            decision.tightest().map(|status| status.name),
            Some(Name::new("real")),
        )?;
        expect_remaining(&step, &decision, &[98, 0])?;
        let step = format!("{name}: its units can be refunded");
        if let Some(refund) = decision.refund() {
            let [real, dry] = ask(1);
            expect_remaining(
                &step,
                &trial.apply(&step, refund, &[real, dry.cost(0)]).await?,
                &[99, 0],
            )?;
        }
        let step = format!("{name}: more than it ever holds passes too");
        let decision = trial.check(&step, &ask(11)).await?;
        expect(&step, "outcome", decision.outcome(), Answer::Allow)?;
        expect(&step, "would refuse", would_refuse(&decision), vec!["dry"])?;
    }
    Ok(())
}

pub(super) async fn shadow_is_taken_with_the_others<S: Store>(trial: &mut Trial<S>) -> Outcome {
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
    let step = "both fit";
    expect_remaining(step, &trial.check(step, &both).await?, &[0, 9])?;
    let step = "the enforced one refuses: nothing is taken of the shadow";
    let decision = trial.check(step, &both).await?;
    expect_allowed(step, &decision, false)?;
    expect_remaining(step, &decision, &[0, 9])?;
    let step = "a shadow that counts refusals counts this one";
    let counting = [both[0], both[1].count_refusals()];
    let decision = trial.check(step, &counting).await?;
    expect_remaining(step, &decision, &[0, 8])?;
    expect(step, "taken", taken(&decision), vec![0, 0])
}

pub(super) async fn shadow_hides_no_refusal<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (minute, hour, ann) = (Quota::per_minute(1), Quota::per_hour(1), key("ann"));
    let both = [
        at_once("hour", &hour, &ann, 1).shadow(),
        at_once("minute", &minute, &ann, 1),
    ];
    let step = "both are spent";
    expect_allowed(step, &trial.check(step, &both).await?, true)?;
    let step = "both report it, and the wait is that of the enforced one";
    let decision = trial.check(step, &both).await?;
    expect(
        step,
        "outcome",
        decision.outcome(),
        Answer::Refuse(Duration::from_secs(60)),
    )?;
    expect(
        step,
        "binding",
        decision.tightest().map(|status| status.name),
        Some(Name::new("minute")),
    )?;
    expect(step, "would refuse", would_refuse(&decision), vec!["hour"])?;
    let enforced: Vec<_> = decision
        .enforced()
        .map(|status| status.name.as_str())
        .collect();
    expect(step, "enforced", enforced, vec!["minute"])
}
