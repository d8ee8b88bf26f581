//! Tests that no more units are held than the limit has, and that only a release or an expiry ends
//! a hold.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::Index;
use tower_quota_core::stored::push_u56;
use tower_quota_core::{Charge, ChargeMode, Decision, Entry, Operation, Outcome, Quota, Timestamp};

use super::config;
use super::trace::{KEY, micros};

const START: u64 = 1_763_712_345_678_901;

#[derive(Clone, Debug)]
enum Step {
    Pause(u64),
    Hold(u64),
    /// Releases up to this many units of an earlier decision, which may have ended.
    Release(Index, u64),
    Renew(Index),
    /// Releases at an instant near the instants of the holds.
    ReleaseAt(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let step = prop_oneof![
        2 => (0..600_000_u64).prop_map(Step::Pause),
        1 => (0..3_u64).prop_map(Step::Pause),
        6 => (1..4_u64).prop_map(Step::Hold),
        3 => (index(), 1..4_u64).prop_map(|(which, units)| Step::Release(which, units)),
        2 => index().prop_map(Step::Renew),
        1 => (0..4_u64).prop_map(Step::ReleaseAt),
    ];
    vec(step, 1..80)
}

/// A hold from its owner's view.
#[derive(Debug)]
struct Owned {
    taken_at: u64,
    expires_at: u64,
    units: u64,
}

struct Work {
    quota: Quota,
    entry: Entry,
    now: u64,
    all: Vec<Owned>,
}

impl Work {
    fn apply(&mut self, operation: Operation, units: u64) -> Decision {
        let charge = Charge::new("holds", &self.quota, &KEY).cost(units);
        let now = Timestamp::from_micros(self.now);
        let decision = self.entry.decide(operation, &[charge], now);
        let bytes = self.entry.encode();
        if bytes.is_empty() {
            assert!(self.entry.is_empty());
        } else {
            assert_eq!(Entry::decode(&bytes).as_ref(), Ok(&self.entry));
        }
        decision
    }

    fn held(&self) -> u64 {
        let live = self.all.iter().filter(|hold| hold.expires_at > self.now);
        live.map(|hold| hold.units).sum()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn holds_agree_with_their_owners(units in 1..8_u64, ttl in 100_000..1_000_000_u64, steps in steps()) {
        let quota = Quota::concurrent(units).ttl(Duration::from_micros(ttl));
        let mut work = Work { quota, entry: Entry::default(), now: START, all: Vec::new() };
        for step in steps {
            match step {
                Step::Pause(pause) => work.now += pause,
                Step::Hold(units) => {
                    let before = work.held();
                    let decision = work.apply(Operation::Check, units);
                    let at = decision.at().as_micros();
                    // Each hold moves the instant by a microsecond, even if the clock stands still.
                    work.now = at;
                    prop_assert_eq!(decision.is_allowed(), work.held() + units <= quota.capacity());
                    if decision.is_allowed() {
                        prop_assert!(work.all.iter().all(|other| other.taken_at < at));
                        work.all.push(Owned { taken_at: at, expires_at: at + ttl, units });
                    } else if let Outcome::Refuse(retry) = decision.outcome() {
                        let retry = micros(retry);
                        prop_assert!((1..=1_000_000.min(ttl)).contains(&retry));
                        let later = Work { now: at + retry, entry: work.entry.clone(), all: Vec::new(), quota }
                            .apply(Operation::Check, units);
                        prop_assert!(later.is_allowed() || retry == 1_000_000 || units > 1);
                    } else {
                        prop_assert!(units > quota.capacity());
                    }
                    prop_assert!(work.held() <= quota.capacity().max(before));
                }
                Step::Release(which, units) if !work.all.is_empty() => {
                    let which = which.index(work.all.len());
                    let taken_at = Timestamp::from_micros(work.all[which].taken_at);
                    work.apply(Operation::Refund { taken_at }, units);
                    let hold = &mut work.all[which];
                    hold.units = hold.units.saturating_sub(units);
                }
                Step::Renew(which) if !work.all.is_empty() => {
                    let which = which.index(work.all.len());
                    let taken_at = Timestamp::from_micros(work.all[which].taken_at);
                    let renewed = work.apply(Operation::Renew { taken_at }, 1).statuses()[0].taken;
                    let hold = &mut work.all[which];
                    let is_held = hold.expires_at > work.now && hold.units > 0;
                    prop_assert_eq!(renewed, if is_held { hold.units } else { 0 });
                    if is_held {
                        hold.expires_at = work.now + ttl;
                    }
                }
                Step::ReleaseAt(after) => {
                    let last = work.all.last().map_or(START, |hold| hold.taken_at);
                    let taken_at = Timestamp::from_micros(last + after + 1);
                    work.apply(Operation::Refund { taken_at }, 9);
                }
                _ => {}
            }
            let status = work.apply(Operation::Peek, 1).statuses()[0];
            prop_assert_eq!(status.remaining(), quota.capacity() - work.held());
            let live = work.all.iter().filter(|hold| hold.units > 0).map(|hold| hold.expires_at);
            let reset = live.max().unwrap_or(0).saturating_sub(work.now);
            // A hold that is released in the microsecond of its charge stays for that microsecond.
            prop_assert!([reset, reset.max(1)].contains(&micros(status.reset_after())));
        }
        // Without releases, all units are free after the expiry.
        work.now += ttl;
        let all_units = quota.capacity();
        prop_assert!(work.apply(Operation::Check, all_units).is_allowed());
    }

    #[test]
    fn changed_quota_never_holds_more(
        quotas in vec((1..8_u64, 100_000..1_000_000_u64), 2),
        steps in vec((0..400_000_u64, 0..2_usize, any::<Index>(), any::<bool>()), 1..60),
    ) {
        let quotas: Vec<Quota> = quotas
            .into_iter()
            .map(|(units, ttl)| Quota::concurrent(units).ttl(Duration::from_micros(ttl)))
            .collect();
        let (mut entry, mut now, mut taken) = (Entry::default(), START, Vec::new());
        for (pause, which, released, releases) in steps {
            now += pause;
            let charge = Charge::new("holds", &quotas[which], &KEY);
            let before = entry.decide(Operation::Peek, &[charge], Timestamp::from_micros(now)).statuses()[0];
            if releases && !taken.is_empty() {
                let taken_at = taken[released.index(taken.len())];
                entry.decide(Operation::Refund { taken_at }, &[charge], Timestamp::from_micros(now));
                let after = entry.decide(Operation::Peek, &[charge], Timestamp::from_micros(now)).statuses()[0];
                // The decision took one unit, so a release gives back at most one.
                prop_assert!(after.remaining() <= before.remaining() + 1);
                continue;
            }
            let decision = entry.decide(Operation::Check, &[charge], Timestamp::from_micros(now));
            now = decision.at().as_micros();
            prop_assert_eq!(decision.is_allowed(), before.remaining() > 0);
            if decision.is_allowed() {
                taken.push(decision.at());
            }
            let decoded = Entry::decode(&entry.encode());
            prop_assert_eq!(decoded.as_ref(), Ok(&entry));
        }
    }

    /// Asserts that a hold that was lost counts once, however often it is taken again.
    #[test]
    fn forced_renewals_take_units_once(
        units in vec(1..4_u64, 1..6),
        is_lost in any::<bool>(),
        renewed in vec((any::<Index>(), 0..3_u64), 0..20),
    ) {
        let (quota, mut entry, mut now) = (Quota::concurrent(20), Entry::default(), START);
        let charge = Charge::new("holds", &quota, &KEY);
        let mut taken = Vec::new();
        for units in units {
            let decision = entry.decide(Operation::Check, &[charge.cost(units)], Timestamp::from_micros(now));
            taken.push((decision.at(), units, !is_lost));
        }
        now = entry.at().as_micros();
        if is_lost {
            entry = Entry::default();
        }
        for (which, pause) in renewed {
            now += pause;
            let which = which.index(taken.len());
            let (taken_at, units, is_held) = &mut taken[which];
            let forced = charge.cost(*units).in_mode(ChargeMode::Forced);
            let renewal = Operation::Renew { taken_at: *taken_at };
            let decision = entry.decide(renewal, &[forced], Timestamp::from_micros(now));
            *is_held = true;
            prop_assert_eq!(decision.statuses()[0].taken, *units);
            let held: u64 = taken.iter().filter(|hold| hold.2).map(|hold| hold.1).sum();
            prop_assert_eq!(decision.statuses()[0].remaining(), 20 - held);
            let decoded = Entry::decode(&entry.encode());
            prop_assert_eq!(decoded.as_ref(), Ok(&entry));
        }
        for (taken_at, units, _) in taken {
            entry.decide(Operation::Refund { taken_at }, &[charge.cost(units)], Timestamp::from_micros(now));
        }
        let peek = entry.decide(Operation::Peek, &[charge], Timestamp::from_micros(now + 9));
        prop_assert_eq!(peek.statuses()[0].remaining(), 20);
    }

    #[test]
    fn altered_holds_are_error_or_entry(
        count in 1..5_u64,
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        later in prop_oneof![Just(0), 0..200_000_000_u64],
    ) {
        let (quota, mut entry) = (Quota::concurrent(9), Entry::default());
        let charge = Charge::new("holds", &quota, &KEY);
        for number in 0..count {
            entry.decide(Operation::Check, &[charge], Timestamp::from_micros(START + number));
        }
        let mut bytes = entry.encode();
        for (position, byte) in changes {
            *position.get_mut(&mut bytes[..]) = byte;
        }
        let Ok(entry) = Entry::decode(&bytes) else { return Ok(()) };
        prop_assert_eq!(&entry.encode(), if entry.is_empty() { &[] } else { &bytes[..] });
        let taken_at = Timestamp::from_micros(START);
        for operation in [
            Operation::Check,
            Operation::Charge,
            Operation::Peek,
            Operation::Refund { taken_at },
            Operation::Renew { taken_at },
        ] {
            for cost in [1, 9, u64::MAX] {
                let now = Timestamp::from_micros(START + later);
                entry.clone().decide(operation, &[charge.cost(cost)], now);
                let forced = charge.cost(cost).in_mode(ChargeMode::Forced);
                entry.clone().decide(operation, &[forced], now);
            }
        }
    }
}

/// Asserts that neither direction of a roll-back locks a client out or creates units.
#[test]
fn holds_and_rates_of_one_name_are_separate() {
    let (rate, holds) = (Quota::per_minute(5), Quota::concurrent(5));
    let mut entry = Entry::default();
    let mut decide = |operation, quota, cost| {
        let charge = Charge::new("limit", quota, &KEY).cost(cost);
        let decision = entry.decide(operation, &[charge], Timestamp::from_micros(START));
        (decision.at(), decision.statuses()[0].remaining())
    };
    assert_eq!(decide(Operation::Check, &rate, 4).1, 1);
    let (taken_at, left) = decide(Operation::Check, &holds, 5);
    assert_eq!(left, 0);
    assert_eq!(decide(Operation::Check, &rate, 1).1, 0);
    assert_eq!(decide(Operation::Refund { taken_at }, &holds, 5).1, 5);
    assert_eq!(decide(Operation::Peek, &rate, 1).1, 0);
    // A reset forgets the counters of all quotas of the name.
    decide(Operation::Check, &holds, 5);
    assert_eq!(decide(Operation::Reset, &rate, 0).1, 5);
    assert_eq!(decide(Operation::Peek, &holds, 0).1, 5);
}

/// Asserts that an entry may have the number of holds and their units, if a store keeps the holds apart.
#[test]
fn number_of_holds_reads_as_one_hold() {
    let (quota, mut entry) = (Quota::concurrent(5), Entry::default());
    let charge = Charge::new("holds", &quota, &KEY);
    for cost in [1, 2] {
        let now = Timestamp::from_micros(START);
        entry.decide(Operation::Check, &[charge.cost(cost)], now);
    }
    let mut bytes = entry.encode();
    let list = bytes.len() - 7 - 42..bytes.len() - 7;
    let mut summary = Vec::new();
    push_u56(&mut summary, 2);
    push_u56(&mut summary, 3);
    bytes[8] -= 28;
    bytes.splice(list, summary);
    let read = Entry::decode(&bytes).unwrap();
    assert_eq!(read, entry.clone().abridged(entry.at()));
    assert_eq!(read.full_at(), entry.full_at());
    assert!(read.is_limited(read.at()));
}

#[test]
fn charges_beyond_capacity_are_bounded() {
    let (quota, mut entry) = (Quota::concurrent(1), Entry::default());
    let charge = Charge::new("holds", &quota, &KEY);
    for _ in 0..10_100 {
        entry.decide(Operation::Charge, &[charge], Timestamp::from_micros(START));
    }
    let status = entry
        .decide(Operation::Peek, &[charge], Timestamp::from_micros(START))
        .statuses()[0];
    assert_eq!(status.debt(), 9_999);
    assert_eq!(Entry::decode(&entry.encode()).as_ref(), Ok(&entry));
}

#[test]
fn refused_request_holds_nothing() {
    let (quota, mut entry) = (Quota::concurrent(2), Entry::default());
    let charge = Charge::new("holds", &quota, &KEY).count_refusals();
    let now = Timestamp::from_micros(START);
    entry.decide(Operation::Check, &[charge], now);
    let refused = entry.decide(Operation::Check, &[charge.cost(2)], now);
    assert_eq!(refused.statuses()[0].remaining(), 1);
    // The request may take a part, or hold as a shadow.
    let partial = entry.decide(Operation::Check, &[charge.cost(2).at_most()], now);
    assert_eq!(partial.statuses()[0].taken, 1);
    let shadow = entry.decide(Operation::Check, &[charge.shadow()], now);
    assert!(shadow.is_allowed() && shadow.statuses()[0].taken == 0);
    let forced = entry.decide(Operation::Check, &[charge.in_mode(ChargeMode::Forced)], now);
    assert_eq!(forced.statuses()[0].debt(), 1);
}

/// Asserts that a forced hold of a refused request joins no other hold of the same instant.
#[test]
fn forced_hold_of_refused_request_is_separate() {
    let (quota, spent) = (Quota::concurrent(5), Quota::per_hour(1));
    let mut entry = Entry::default();
    let mut decide = |operation, charges: &[Charge<'_>]| {
        entry.decide(operation, charges, Timestamp::from_micros(START))
    };
    let (hold, other) = (
        Charge::new("holds", &quota, &KEY),
        Charge::new("spent", &spent, &KEY),
    );
    let taken_at = decide(Operation::Check, &[hold, other]).at();
    let forced = [hold.in_mode(ChargeMode::Forced), other];
    assert!(!decide(Operation::Check, &forced).is_allowed());
    decide(Operation::Refuse, &forced[..1]);
    let renewed = decide(Operation::Renew { taken_at }, &[hold]);
    assert_eq!(renewed.statuses()[0].taken, 1);
    assert_eq!(renewed.statuses()[0].remaining(), 2);
}

/// Asserts that a lost hold counts once if the clock of the next server is up to a minute behind.
#[test]
fn hold_from_later_clock_counts_once() {
    let quota = Quota::concurrent(5).ttl(Duration::from_secs(600));
    let hold = Charge::new("holds", &quota, &KEY);
    for (lead, counted) in [(1, 1), (60_000_000, 1), (60_000_001, 2)] {
        let mut entry = Entry::default();
        let mut decide = |operation, charge: Charge<'_>| {
            entry.decide(operation, &[charge], Timestamp::from_micros(START))
        };
        let other = decide(Operation::Check, hold).at();
        let taken_at = Timestamp::from_micros(START + lead);
        let renewal = Operation::Renew { taken_at };
        for _ in 0..2 {
            decide(renewal, hold.in_mode(ChargeMode::Forced));
        }
        let again = decide(Operation::Peek, hold);
        assert_eq!(again.statuses()[0].remaining(), 4 - counted, "{lead}");
        // Even then, the hold has an instant of its own.
        let taken_at = taken_at.taken_again_at(again.at());
        assert!(other < taken_at);
        let released = decide(Operation::Refund { taken_at }, hold);
        assert_eq!(released.statuses()[0].remaining(), 5 - counted, "{lead}");
    }
}

/// Asserts that a hold without units promises no unit.
#[test]
fn released_hold_shortens_no_retry() {
    let quota = Quota::concurrent(2);
    let mut entry = Entry::default();
    let mut decide = |operation, cost| {
        let charge = Charge::new("holds", &quota, &KEY).cost(cost);
        entry.decide(operation, &[charge], Timestamp::from_micros(START))
    };
    decide(Operation::Check, 1);
    let taken_at = decide(Operation::Check, 1).at();
    decide(Operation::Refund { taken_at }, 1);
    let refused = decide(Operation::Check, 2);
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
}
