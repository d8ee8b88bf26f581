//! Defines plans, which are the random policies and traces as data that shrinks.

use std::time::Duration;

use tower_quota_core::stored::TRUSTED_LEAD;
use tower_quota_core::{
    Charge, ChargeMode, Decision, Key, LimitStatus, Name, Operation, Outcome, Penalty, Quota,
    Timestamp,
};

pub(super) const LIMITS: [&str; 6] = ["burst", "minute", "login", "day", "queue", "log"];
/// The number of keys. The last key is the key of all requests together.
pub(super) const KEYS: usize = 3;
/// The last instant of a plan, in microseconds since the epoch. The instant is in the year 2112, up
/// to which stores count exactly.
const LAST: u64 = 1 << 52;

#[derive(Clone, Debug)]
pub(super) struct TracePlan {
    /// The first instant in microseconds since the epoch.
    pub(super) start: u64,
    /// The limits' own quotas come first, followed by the quotas to which limits may change.
    pub(super) quotas: Vec<Quota>,
    pub(super) penalties: Vec<Penalty>,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) pause: Pause,
    /// Whether the request is sent together with the step before, without a pause.
    pub(super) joins_last: bool,
    pub(super) action: Action,
    pub(super) charges: Vec<ChargePlan>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Pause {
    Micros(u64),
    Back(u64),
    /// The pause is thousandths of the first charge's window, and some microseconds.
    Horizon(u64, i64),
    /// The pause lasts until the wait of the last decision is over, and some microseconds.
    Wait(i64),
    /// The pause lasts until the first limit of the last decision is full, and some microseconds.
    Full(i64),
    /// The clock goes back to an instant at which the last decision is too far ahead to be trusted,
    /// and some microseconds.
    Distrust(i64),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Check,
    Charge,
    /// The step refunds the decision this many decisions ago.
    Refund(usize),
    /// The step renews the holds of the decision this many decisions ago.
    Renew(usize),
    /// The step renews such holds, and takes holds again that the store has lost.
    TakeAgain(usize),
    /// The step charges more for a decision that many steps ago.
    Surcharge(usize),
    /// The step refunds an instant long ago or in the future.
    RefundAt(u64),
    Reset,
    Refuse,
    Peek,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChargePlan {
    pub(super) limit: usize,
    pub(super) key: usize,
    pub(super) quota: usize,
    pub(super) cost: Cost,
    pub(super) max_wait_micros: Option<u64>,
    pub(super) penalty: Option<usize>,
    pub(super) counts_refusals: bool,
    pub(super) is_shadow: bool,
    pub(super) is_at_most: bool,
    pub(super) is_refundable: bool,
    pub(super) mode: ChargeMode,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cost {
    Units(u64),
    /// The cost is thousandths of the capacity.
    Share(u64),
    /// The cost is this many units above the capacity.
    Above(u64),
}

pub(super) fn keys() -> [Key<'static>; KEYS] {
    let client = Name::new("client");
    [
        Key::owned(client, "ann"),
        Key::owned(client, "bob"),
        Key::EVERYONE,
    ]
}

impl TracePlan {
    pub(super) fn charges<'a>(
        &'a self,
        step: &Step,
        keys: &'a [Key<'static>; KEYS],
    ) -> Vec<Charge<'a>> {
        step.charges
            .iter()
            .map(|charge| charge.build(self, keys))
            .collect()
    }

    pub(super) fn instant(&self, step: &Step, now: u64, last: Option<&Decision>) -> u64 {
        let after = |span: Duration, by: i64| match last {
            Some(last) => (last.at() + span).as_micros().saturating_add_signed(by),
            None => now,
        };
        let then = match step.pause {
            Pause::Micros(micros) => now + micros,
            Pause::Back(micros) => now.saturating_sub(micros),
            Pause::Horizon(thousandths, by) => {
                let quota = step
                    .charges
                    .first()
                    .map(|charge| &self.quotas[charge.quota]);
                (now + part(
                    micros(quota.map_or(Duration::ZERO, Quota::window)),
                    thousandths,
                ))
                .saturating_add_signed(by)
            }
            Pause::Wait(by) => match last.map(Decision::outcome) {
                Some(Outcome::Refuse(span) | Outcome::Wait(span)) => after(span, by),
                _ => now,
            },
            Pause::Full(by) => {
                let first = last.and_then(|last| last.statuses().first());
                first.map_or(now, |first| after(first.reset_after(), by))
            }
            Pause::Distrust(by) => last.map_or(now, |last| {
                let reset = last
                    .statuses()
                    .first()
                    .map_or(Duration::ZERO, LimitStatus::reset_after);
                last.at()
                    .as_micros()
                    .saturating_sub(TRUSTED_LEAD + micros(reset))
                    .saturating_add_signed(by)
            }),
        };
        then.min(LAST)
    }
}

impl Step {
    /// Returns a step that reports every limit of a key and charges nothing.
    pub(super) fn look(key: usize) -> Self {
        let look = |limit| ChargePlan::plain(limit, key, limit, Cost::Units(0));
        let charges = (0..LIMITS.len()).map(look).collect();
        Self {
            pause: Pause::Micros(0),
            joins_last: false,
            action: Action::Check,
            charges,
        }
    }

    fn refunded<'d>(&self, past: &'d [Decision]) -> Option<&'d Decision> {
        match self.action {
            Action::Refund(ago) => past.iter().rev().nth(ago),
            _ => None,
        }
    }

    pub(super) fn with_turns<'a>(
        &self,
        mut charges: Vec<Charge<'a>>,
        past: &[Decision],
    ) -> Vec<Charge<'a>> {
        if matches!(self.action, Action::TakeAgain(_)) {
            for charge in &mut charges {
                *charge = charge.in_mode(ChargeMode::Forced);
            }
        }
        if let Some(refunded) = self.refunded(past) {
            for charge in &mut charges {
                if let Some(status) = refunded.status(charge.name().as_str()) {
                    *charge = charge.turn(status.reset_after());
                }
            }
        }
        charges
    }

    pub(super) fn operation(&self, past: &[Decision]) -> Operation {
        match self.action {
            Action::Check => Operation::Check,
            Action::Charge => Operation::Charge,
            Action::Refund(_) => match self.refunded(past) {
                Some(decision) => Operation::Refund {
                    taken_at: decision.at(),
                },
                None => Operation::Check,
            },
            Action::Surcharge(ago) => match past.iter().rev().nth(ago) {
                Some(decision) => Operation::Surcharge {
                    taken_at: decision.at(),
                },
                None => Operation::Check,
            },
            Action::Renew(ago) | Action::TakeAgain(ago) => match past.iter().rev().nth(ago) {
                Some(decision) => Operation::Renew {
                    taken_at: decision.at(),
                },
                None => Operation::Check,
            },
            Action::RefundAt(micros) => Operation::Refund {
                taken_at: Timestamp::from_micros(micros),
            },
            Action::Reset => Operation::Reset,
            Action::Refuse => Operation::Refuse,
            Action::Peek => Operation::Peek,
        }
    }
}

impl ChargePlan {
    pub(super) const fn plain(limit: usize, key: usize, quota: usize, cost: Cost) -> Self {
        Self {
            limit,
            key,
            quota,
            cost,
            max_wait_micros: None,
            penalty: None,
            counts_refusals: false,
            is_shadow: false,
            is_at_most: false,
            is_refundable: false,
            mode: ChargeMode::Checked,
        }
    }

    fn build<'a>(&self, plan: &'a TracePlan, keys: &'a [Key<'static>; KEYS]) -> Charge<'a> {
        let quota = &plan.quotas[self.quota];
        let cost = match self.cost {
            Cost::Units(units) => units,
            Cost::Share(thousandths) => part(quota.capacity(), thousandths),
            Cost::Above(units) => quota.capacity().saturating_add(units),
        };
        let mut charge = Charge::new(LIMITS[self.limit], quota, &keys[self.key]).cost(cost);
        if let Some(micros) = self.max_wait_micros {
            charge = charge.max_wait(Duration::from_micros(micros));
        }
        if let Some(penalty) = self.penalty {
            charge = charge.penalty(&plan.penalties[penalty]);
        }
        if self.counts_refusals {
            charge = charge.count_refusals();
        }
        if self.is_shadow {
            charge = charge.shadow();
        }
        if self.is_at_most {
            charge = charge.at_most();
        }
        if self.mode != ChargeMode::Checked {
            charge = charge.in_mode(self.mode);
        }
        if self.is_refundable {
            charge.refundable()
        } else {
            charge
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn part(of: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(thousandths) / 1_000).unwrap_or(u64::MAX)
}
