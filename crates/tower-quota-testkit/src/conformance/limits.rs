//! Tests several limits in one decision.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Operation, Quota, Store};

use super::Verdict;
use super::failure::expect;
use super::samples::{Sample, at_once, expect_binding, expect_remaining, key};
use super::trial::Trial;

const TIGHT: Quota = Quota::per_second(3);
const MIDDLE: Quota = Quota::per_minute(5).sliding_window();
const WIDE: Quota = Quota::per_hour(100).fixed_window();

pub(super) async fn one_key_is_charged_all_or_nothing(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let three = |cost| {
        [
            at_once("tight", &TIGHT, &ann, cost),
            at_once("middle", &MIDDLE, &ann, cost),
            at_once("wide", &WIDE, &ann, cost),
        ]
    };
    trial.step("2 of each fit");
    trial.leaves(&three(2), &[1, 3, 98]).await?;
    trial.step("2 more do not fit the tight one");
    let decision = trial.refuses(&three(2)).await?;
    expect_remaining(&decision, &[1, 3, 98])?;
    trial.step("nothing was charged by the refusal");
    trial.leaves(&three(0), &[1, 3, 98]).await?;

    trial.advance(Duration::from_secs(1));
    trial.step("a second later the tight one is full");
    trial.leaves(&three(3), &[0, 0, 95]).await?;
    trial.advance(Duration::from_secs(1));
    trial.step("the middle one refuses, the one before and the one after it stay");
    let decision = trial.refuses(&three(1)).await?;
    expect_remaining(&decision, &[3, 0, 95])
}

pub(super) async fn several_keys_are_charged_all_or_nothing(
    trial: &mut Trial,
    ten: &Sample,
) -> Verdict {
    let (ann, bob) = (key(&format!("ann, {ten}")), key(&format!("bob, {ten}")));
    let everyone = key(&format!("everyone, {ten}"));
    let both = |own, cost| {
        [
            at_once("own", &ten.quota, own, cost),
            at_once("shared", &ten.quota, &everyone, cost),
        ]
    };

    trial.step("ann takes 6");
    trial.leaves(&both(&ann, 6), &[4, 4]).await?;
    trial.step("bob wants 5 of the 4 that are shared");
    let decision = trial.refuses(&both(&bob, 5)).await?;
    expect_remaining(&decision, &[10, 4])?;
    trial.step("in the other order too");
    let [own, shared] = both(&bob, 5);
    let decision = trial.refuses(&[shared, own]).await?;
    expect_remaining(&decision, &[4, 10])?;
    trial.step("neither was charged");
    trial.leaves(&both(&bob, 0), &[10, 4]).await
}

pub(super) async fn binding_limit_is_named(trial: &mut Trial) -> Verdict {
    let ann = key("ann");
    let second = Quota::per_second(5);
    let minute = Quota::per_minute(6).fixed_window();
    let charges = |cost| {
        [
            at_once("second", &second, &ann, cost),
            at_once("minute", &minute, &ann, cost),
        ]
    };

    trial.step("admitted: the fewest left bind");
    expect_binding(&trial.check(&charges(1)).await?, "second")?;
    trial.step("4 of both: 0 and 1 are left");
    expect_binding(&trial.check(&charges(4)).await?, "second")?;
    trial.step("refused by both: the longest wait binds");
    let decision = trial.check(&charges(2)).await?;
    expect_binding(&decision, "minute")?;
    expect(
        "retry after",
        decision.retry_after(),
        Some(Duration::from_secs(60)),
    )?;
    trial.step("refused by one: it binds");
    expect_binding(&trial.check(&charges(1)).await?, "second")?;
    trial.step("a limit that never admits binds before any wait");
    let decision = trial.check(&[charges(6)[0], charges(2)[1]]).await?;
    expect_binding(&decision, "second")?;
    expect(
        "outcome",
        decision.outcome(),
        tower_quota_core::Outcome::Never,
    )
}

pub(super) async fn order_of_limits_does_not_matter(trial: &mut Trial) -> Verdict {
    let (ann, bob) = (key("ann"), key("bob"));
    for step in [
        "the first",
        "the second",
        "the third",
        "the fourth, which is refused",
    ] {
        trial.step(step);
        let forth = [
            at_once("tight", &TIGHT, &ann, 1),
            at_once("wide", &WIDE, &ann, 1),
        ];
        let back = [
            at_once("wide", &WIDE, &bob, 1),
            at_once("tight", &TIGHT, &bob, 1),
        ];
        let (one, other) = (trial.check(&forth).await?, trial.check(&back).await?);
        expect("outcome", other.outcome(), one.outcome())?;
        expect("binding", other.tightest(), one.tightest())?;
        let reversed: Vec<_> = other.statuses().iter().rev().copied().collect();
        expect("statuses", reversed.as_slice(), one.statuses())?;
    }
    Ok(())
}

pub(super) async fn keys_are_counted_separately(trial: &mut Trial) -> Verdict {
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
        trial.step(format!("key {position} is fresh"));
        trial
            .leaves(&[at_once("tight", &TIGHT, key, 2)], &[1])
            .await?;
    }
    for (position, key) in keys.iter().enumerate() {
        trial.step(format!("key {position} is remembered"));
        trial.refuses(&[at_once("tight", &TIGHT, key, 2)]).await?;
    }
    Ok(())
}

/// Tests that a store decides [`Charge::MOST`] charges. A store that fails for more must not charge
/// any.
pub(super) async fn most_charges_are_decided_together(trial: &mut Trial) -> Verdict {
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
    trial.step("32 charges");
    trial.leaves(&charges, &[2; Charge::MOST]).await?;

    trial.step("33 charges, then a peek at 32");
    let charges: Vec<Charge<'_>> = of(&bob).collect();
    let remaining = match trial.store().check(&charges).await {
        Ok(_) => 2,
        Err(_) => 3,
    };
    let peek = trial.store().apply(Operation::Peek, &charges[1..]).await;
    let peek = peek.map_err(|error| error.to_string())?;
    expect_remaining(&peek, &[remaining; Charge::MOST])
}
