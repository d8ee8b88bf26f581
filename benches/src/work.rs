//! Fixed amounts of work, to have their instructions counted from outside.

use std::error::Error;

use crate::layer::contenders::{Manner, bare, behind_governor, behind_tower_quota};
use crate::layer::service::{Answers, request};
use crate::memory::contender::Contender;
use crate::memory::governor::usual;
use crate::memory::ours::TowerQuota;

/// Does one decision.
type Step = Box<dyn FnMut()>;
type Case = (&'static str, fn() -> Result<Step, Box<dyn Error>>);

/// tower-quota's and, to compare, its peers'. All on one hot key.
const CASES: [Case; 14] = [
    ("memory/1-limit", || Ok(asking(TowerQuota::<1>::new(1_000)))),
    ("memory/3-limits", || Ok(asking(TowerQuota::<3>::new(1_000)))),
    ("layer/plain", || Ok(requesting(behind_tower_quota(Manner::Plain, 1)))),
    ("layer/headers", || Ok(requesting(behind_tower_quota(Manner::Headers, 1)))),
    ("layer/headers/3-limits", || Ok(requesting(behind_tower_quota(Manner::Headers, 3)))),
    ("layer/refused", || Ok(requesting(behind_tower_quota(Manner::Refused, 1)))),
    ("layer/refused/3-limits", || Ok(requesting(behind_tower_quota(Manner::Refused, 3)))),
    ("bare/layer", || Ok(requesting(bare()))),
    ("bare/request", || Ok(Box::new(|| drop(request())))),
    ("governor/1-limit", || Ok(asking(usual::<u64>(1)))),
    ("governor/3-limits", || Ok(asking(usual::<u64>(3)))),
    ("tower_governor/plain", || Ok(requesting(behind_governor(Manner::Plain, 1)?))),
    ("tower_governor/headers", || Ok(requesting(behind_governor(Manner::Headers, 1)?))),
    ("tower_governor/refused", || Ok(requesting(behind_governor(Manner::Refused, 1)?))),
];

/// Does so many decisions of a case; without one, prints the cases.
pub(crate) fn run(case: Option<&str>, decisions: u32) -> Result<(), Box<dyn Error>> {
    let Some(wanted) = case else {
        CASES.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let (_, prepare) = CASES.iter().find(|(name, _)| *name == wanted).ok_or("no such case")?;
    let mut step = prepare()?;
    // The first decision makes what others find.
    step();
    counted(decisions, &mut step);
    Ok(())
}

/// What callgrind is told to look at, by this name.
#[inline(never)]
fn counted(decisions: u32, step: &mut dyn FnMut()) {
    (0..decisions).for_each(|_| step());
}

fn asking(contender: impl Contender<u64> + 'static) -> Step {
    Box::new(move || {
        std::hint::black_box(contender.admits(std::hint::black_box(&7)));
    })
}

fn requesting(mut service: Box<dyn Answers>) -> Step {
    Box::new(move || {
        std::hint::black_box(service.admits(request()));
    })
}
