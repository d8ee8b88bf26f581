//! Several limits are one decision.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Operation, Quota, Store};

use super::Outcome;
use super::failure::{Failure, expect};
use super::samples::{at_once, expect_allowed, expect_remaining, key};
use super::trial::Trial;

const TIGHT: Quota = Quota::per_second(3);
const MIDDLE: Quota = Quota::per_minute(5).sliding_window();
const WIDE: Quota = Quota::per_hour(100).fixed_window();

pub(super) async fn one_key_is_charged_all_or_nothing<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let three = |cost| {
        [
            at_once("tight", &TIGHT, &ann, cost),
            at_once("middle", &MIDDLE, &ann, cost),
            at_once("wide", &WIDE, &ann, cost),
        ]
    };
    let step = "2 of each fit";
    expect_remaining(step, &trial.check(step, &three(2)).await?, &[1, 3, 98])?;
    let step = "2 more do not fit the tight one";
    let decision = trial.check(step, &three(2)).await?;
    expect_allowed(step, &decision, false)?;
    expect_remaining(step, &decision, &[1, 3, 98])?;
    let step = "nothing was charged by the refusal";
    expect_remaining(step, &trial.check(step, &three(0)).await?, &[1, 3, 98])?;

    trial.advance(Duration::from_secs(1));
    let step = "a second later the tight one is full";
    expect_remaining(step, &trial.check(step, &three(3)).await?, &[0, 0, 95])?;
    trial.advance(Duration::from_secs(1));
    let step = "the middle one refuses, the one before and the one after it stay";
    let decision = trial.check(step, &three(1)).await?;
    expect_allowed(step, &decision, false)?;
    expect_remaining(step, &decision, &[3, 0, 95])
}

pub(super) async fn several_keys_are_charged_all_or_nothing<S: Store>(
    trial: &mut Trial<S>,
) -> Outcome {
    for (name, quota) in trial.quotas() {
        let (ann, bob) = (key(&format!("ann, {name}")), key(&format!("bob, {name}")));
        let everyone = key(&format!("everyone, {name}"));
        let both = |own, cost| {
            [
                at_once("own", &quota, own, cost),
                at_once("shared", &quota, &everyone, cost),
            ]
        };

        let step = format!("{name}: ann takes 6");
        expect_remaining(&step, &trial.check(&step, &both(&ann, 6)).await?, &[4, 4])?;
        let step = format!("{name}: bob wants 5 of the 4 that are shared");
        let decision = trial.check(&step, &both(&bob, 5)).await?;
        expect_allowed(&step, &decision, false)?;
        expect_remaining(&step, &decision, &[10, 4])?;
        let step = format!("{name}: in the other order too");
        let [own, shared] = both(&bob, 5);
        let decision = trial.check(&step, &[shared, own]).await?;
        expect_allowed(&step, &decision, false)?;
        expect_remaining(&step, &decision, &[4, 10])?;
        let step = format!("{name}: neither was charged");
        expect_remaining(&step, &trial.check(&step, &both(&bob, 0)).await?, &[10, 4])?;
    }
    Ok(())
}

pub(super) async fn binding_limit_is_named<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let ann = key("ann");
    let second = Quota::per_second(5);
    let minute = Quota::per_minute(6).fixed_window();
    let charges = |cost| {
        [
            at_once("second", &second, &ann, cost),
            at_once("minute", &minute, &ann, cost),
        ]
    };
    let bound =
        |decision: &tower_quota_core::Decision| decision.tightest().map(|status| status.name);

    let step = "admitted: the fewest left bind";
    expect(
        step,
        "binding",
        bound(&trial.check(step, &charges(1)).await?),
        Some(Name::new("second")),
    )?;
    let step = "4 of both: 0 and 1 are left";
    expect(
        step,
        "binding",
        bound(&trial.check(step, &charges(4)).await?),
        Some(Name::new("second")),
    )?;
    let step = "refused by both: the longest wait binds";
    let decision = trial.check(step, &charges(2)).await?;
    expect(step, "binding", bound(&decision), Some(Name::new("minute")))?;
    expect(
        step,
        "retry after",
        decision.retry_after(),
        Some(Duration::from_secs(60)),
    )?;
    let step = "refused by one: it binds";
    expect(
        step,
        "binding",
        bound(&trial.check(step, &charges(1)).await?),
        Some(Name::new("second")),
    )?;
    let step = "a limit that never admits binds before any wait";
    let decision = trial.check(step, &[charges(6)[0], charges(2)[1]]).await?;
    expect(step, "binding", bound(&decision), Some(Name::new("second")))?;
    expect(
        step,
        "outcome",
        decision.outcome(),
        tower_quota_core::Outcome::Never,
    )
}

pub(super) async fn order_of_limits_does_not_matter<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (ann, bob) = (key("ann"), key("bob"));
    for step in [
        "the first",
        "the second",
        "the third",
        "the fourth, which is refused",
    ] {
        let forth = [
            at_once("tight", &TIGHT, &ann, 1),
            at_once("wide", &WIDE, &ann, 1),
        ];
        let back = [
            at_once("wide", &WIDE, &bob, 1),
            at_once("tight", &TIGHT, &bob, 1),
        ];
        let (one, other) = (
            trial.check(step, &forth).await?,
            trial.check(step, &back).await?,
        );
        expect(step, "outcome", other.outcome(), one.outcome())?;
        expect(step, "binding", other.tightest(), one.tightest())?;
        let reversed: Vec<_> = other.statuses().iter().rev().copied().collect();
        expect(step, "statuses", reversed.as_slice(), one.statuses())?;
    }
    Ok(())
}

pub(super) async fn keys_are_counted_separately<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let user = Name::new("user");
    let long = "k".repeat(5_000);
    let keys = [
        key("ann"),
        Key::owned(user, "ann"),
        Key::owned(user, ""),
        Key::owned(user, "ann "),
        Key::owned(user, "\r\n\0{}:*"),
        Key::owned(user, long.as_str()),
        Key::owned(user, format!("{long}k")),
        Key::EVERYONE,
    ];
    for (position, key) in keys.iter().enumerate() {
        let step = format!("key {position} is fresh");
        expect_remaining(
            &step,
            &trial
                .check(&step, &[at_once("tight", &TIGHT, key, 2)])
                .await?,
            &[1],
        )?;
    }
    for (position, key) in keys.iter().enumerate() {
        let step = format!("key {position} is remembered");
        expect_allowed(
            &step,
            &trial
                .check(&step, &[at_once("tight", &TIGHT, key, 2)])
                .await?,
            false,
        )?;
    }
    Ok(())
}

/// Every store decides [`Charge::MOST`] charges. A store that fails for more must not have charged any.
pub(super) async fn most_charges_are_decided_together<S: Store>(trial: &mut Trial<S>) -> Outcome {
    let (ann, bob) = (key("ann"), key("bob"));
    let names: Vec<Name> = (0..=Charge::MOST)
        .map(|number| Name::from(format!("limit-{number}")))
        .collect();
    let of = |key| {
        names
            .iter()
            .map(move |name| Charge::new(*name, &TIGHT, key))
    };
    let charges: Vec<Charge<'_>> = of(&ann).take(Charge::MOST).collect();
    let step = "32 charges";
    let decision = trial.check(step, &charges).await?;
    expect_remaining(step, &decision, &[2; Charge::MOST])?;

    let step = "33 charges, then a peek at 32";
    let charges: Vec<Charge<'_>> = of(&bob).collect();
    let remaining = match trial.store().check(&charges).await {
        Ok(_) => 2,
        Err(_) => 3,
    };
    let peek = trial.store().apply(Operation::Peek, &charges[1..]).await;
    let peek = peek.map_err(|error| Failure::new(step, error.to_string()))?;
    expect_remaining(step, &peek, &[remaining; Charge::MOST])
}
