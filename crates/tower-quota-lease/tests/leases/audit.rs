//! Checks that all spent units of a run fit into the quotas.
//!
//! The audit only reads the store's calls and the admitted requests, and never an instance's own
//! figures.
//!
//! 1. A lease of the same instance charged every unit that an instance spends without the store, at
//!    most a lease's term before. No unit of a lease is spent twice.
//! 2. An instance has not spent the units that it returns, for each limit.
//! 3. The units that all instances have spent of a counter must fit into the limit's own quota, in
//!    any interval.
//!
//! A refunded request counts as if it had never been made, before and after the refund. If a refund
//! gives too many units back, the other requests exceed the quota.
//!
//! A reset divides an interval. Units that were charged before the reset count to the first part,
//! even if an instance spends them up to a lease's term later, because other instances do not know
//! of the reset. These instances refund the rest of the leases to a counter that has forgotten the
//! charge. A bucket and a log give no units back for such a refund. A window does, and may admit
//! the units that the instances held at the reset in addition.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tower_quota_core::{Algorithm, Charge, Entry, Key, Operation, Quota, Timestamp};

use crate::LIMIT;
use crate::mixed::{Admitted, COUNTERS, Mixed, Run, limit_of};
use crate::recorder::{Call, Caller};

/// The units of a counter that a lease has charged.
#[derive(Debug)]
struct Leased {
    charged: Spent,
    ends_at: u64,
}

/// The units of a counter that were spent, or charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spent {
    /// The number of resets before the charge.
    part: usize,
    at: u64,
    units: u64,
}

/// Returns the first violation in a run.
pub(crate) fn audit(fleet: &Mixed, run: &Run) -> Result<(), String> {
    (0..COUNTERS).try_for_each(|counter| Audit::new(fleet, run, counter).run())
}

/// The check of one counter.
struct Audit<'r> {
    run: &'r Run,
    quota: Quota,
    counter: usize,
    /// The term of a lease, in microseconds.
    term: u64,
    /// The calls on this counter, with the number of resets before each call.
    calls: Vec<(usize, &'r Call)>,
    resets: Vec<(usize, &'r Call)>,
}

impl<'r> Audit<'r> {
    fn new(fleet: &Mixed, run: &'r Run, counter: usize) -> Self {
        let quota = fleet.quotas[limit_of(counter)];
        let mut part = 0;
        let about = run
            .calls
            .iter()
            .filter(|call| call.charges.iter().any(|(number, _)| *number == counter));
        let calls = about.map(|call| {
            part += usize::from(call.operation == Operation::Reset);
            (part, call)
        });
        let calls: Vec<(usize, &Call)> = calls.collect();
        let resets = calls
            .iter()
            .copied()
            .filter(|(_, call)| call.operation == Operation::Reset)
            .collect();
        Self {
            run,
            quota,
            counter,
            term: longest_lease(&quota, fleet.longest),
            calls,
            resets,
        }
    }

    fn run(&self) -> Result<(), String> {
        let by_request: HashMap<u64, Spent> = self
            .charges()
            .filter_map(|(part, call)| Some((call.caller.request?, self.charged(part, call))))
            .collect();
        // A request that called the store took leased units just before the call.
        let checks = self.run.calls.iter();
        let checks = checks.filter(|call| call.operation == Operation::Check);
        let called_at: HashMap<u64, Timestamp> = checks
            .filter_map(|call| Some((call.caller.request?, call.caller.sent)))
            .collect();
        let refunds = self
            .calls
            .iter()
            .filter(|(_, call)| matches!(call.operation, Operation::Refund { .. }));
        let refunded: HashSet<u64> = refunds
            .filter_map(|(_, call)| call.caller.request)
            .collect();
        let instances = self
            .run
            .admitted
            .iter()
            .map(|request| request.instance + 1)
            .max()
            .unwrap_or(0);
        let mut spent = Vec::new();
        for instance in 0..instances {
            let requests = self
                .run
                .admitted
                .iter()
                .filter(|request| request.instance == instance);
            let mut from_leases = Vec::new();
            let mut leased = self.leases(instance);
            for request in requests {
                let Some(units) = self.units(request) else {
                    continue;
                };
                match (by_request.get(&request.id), request.is_refunded) {
                    (Some(charged), false) => spent.push(*charged),
                    (None, false) => {
                        let at = called_at.get(&request.id).unwrap_or(&request.at);
                        from_leases.push((at.as_micros(), units));
                    }
                    // The refund went into a lease without a call, because the lease has the
                    // instant of another limit of the request.
                    (Some(charged), true) if !refunded.contains(&request.id) => {
                        leased.push(self.lease(*charged, u64::MAX));
                    }
                    (_, true) => {}
                }
            }
            self.returned_fits(instance, &leased, &from_leases)?;
            self.match_leases(&mut leased, from_leases, &mut spent)?;
        }
        spent.sort();
        for part in spent.chunk_by(|one, other| one.part == other.part) {
            self.fits(part)?;
        }
        self.no_refund_across_own_reset()
    }

    fn charges(&self) -> impl Iterator<Item = (usize, &'r Call)> {
        self.calls
            .iter()
            .copied()
            .filter(|(_, call)| call.operation == Operation::Check && call.is_allowed)
    }

    fn units(&self, request: &Admitted) -> Option<u64> {
        request
            .asked
            .units()
            .find(|(counter, _)| *counter == self.counter)
            .map(|(_, units)| units)
    }

    fn charged(&self, part: usize, call: &Call) -> Spent {
        let units = call
            .charges
            .iter()
            .filter(|(counter, _)| *counter == self.counter)
            .map(|(_, units)| units)
            .sum();
        Spent {
            part,
            at: call.at.as_micros(),
            units,
        }
    }

    /// Returns the leases of an instance. Its own reset of the counter ends them.
    fn leases(&self, instance: u64) -> Vec<Leased> {
        let leases = self.charges().map(|(part, call)| (part, call, call.caller));
        let leases =
            leases.filter(|(_, _, caller)| caller.instance == instance && caller.request.is_none());
        let leases = leases.map(|(part, call, caller)| {
            let resets = self.resets.iter().map(|(_, reset)| reset.caller);
            let own_after =
                resets.filter(|reset| reset.instance == instance && reset.sent > caller.sent);
            let reset = own_after.map(|reset| reset.sent).min();
            // The order within one instant is unknown.
            self.lease(
                self.charged(part, call),
                reset.map_or(u64::MAX, |reset| reset.as_micros() + 1),
            )
        });
        leases.collect()
    }

    fn lease(&self, charged: Spent, ends_at: u64) -> Leased {
        let mut ends_at = ends_at.min(charged.at + self.term);
        if self.quota.algorithm() == Algorithm::FixedWindow {
            ends_at = ends_at.min((self.window(charged.at) + 1) * self.period());
        }
        Leased { charged, ends_at }
    }

    /// Checks that an instance spends and returns no more units than its leases have charged.
    fn returned_fits(
        &self,
        instance: u64,
        leased: &[Leased],
        from_leases: &[(u64, u64)],
    ) -> Result<(), String> {
        let refunds = self
            .calls
            .iter()
            .filter(|(_, call)| matches!(call.operation, Operation::Refund { .. }));
        let own = refunds
            .filter(|(_, call)| call.caller.instance == instance && call.caller.request.is_none());
        let returned: u64 = own
            .map(|(part, call)| self.charged(*part, call).units)
            .sum();
        let charged: u64 = leased.iter().map(|lease| lease.charged.units).sum();
        let spent: u64 = from_leases.iter().map(|(_, units)| units).sum();
        if spent + returned <= charged {
            return Ok(());
        }
        Err(format!(
            "instance {instance} spent {spent} and returned {returned} units of {}, of {charged}",
            self.counter
        ))
    }

    /// Finds a charge for each unit that was spent without the store, beginning with the lease that
    /// ends first.
    fn match_leases(
        &self,
        leased: &mut [Leased],
        mut from_leases: Vec<(u64, u64)>,
        spent: &mut Vec<Spent>,
    ) -> Result<(), String> {
        leased.sort_by_key(|lease| lease.charged.at);
        from_leases.sort_unstable();
        let mut first = 0;
        for (at, mut units) in from_leases {
            while first < leased.len()
                && (leased[first].ends_at <= at || leased[first].charged.units == 0)
            {
                first += 1;
            }
            while units > 0 {
                let live = |lease: &&mut Leased| lease.charged.units > 0 && at < lease.ends_at;
                let so_far = leased.partition_point(|lease| lease.charged.at <= at);
                let live: Vec<&mut Leased> =
                    leased[first..so_far].iter_mut().filter(live).collect();
                let is_clear = live
                    .windows(2)
                    .all(|two| two[0].charged.part == two[1].charged.part);
                let Some(lease) = live.into_iter().min_by_key(|lease| lease.ends_at) else {
                    let Self {
                        quota,
                        counter,
                        term,
                        ..
                    } = self;
                    return Err(format!(
                        "{units} units of {counter} were spent at {at} and not charged within {term} us: {quota:?}"
                    ));
                };
                let taken = lease.charged.units.min(units);
                lease.charged.units -= taken;
                units -= taken;
                // With leases from before and after a reset, the spent lease is unknown.
                if is_clear {
                    spent.push(Spent {
                        at,
                        units: taken,
                        ..lease.charged
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks the units spent between two resets against the limit's own quota.
    fn fits(&self, spent: &[Spent]) -> Result<(), String> {
        let part = spent.first().map_or(0, |spent| spent.part);
        let over = match self.quota.algorithm() {
            Algorithm::FixedWindow => self.first_full_window(spent, part),
            Algorithm::SlidingWindow => self.first_full_period(spent, part),
            _ => self.first_refused(spent),
        };
        over.map_or(Ok(()), |spent| {
            Err(format!(
                "{spent:?} of counter {} is over {:?}",
                self.counter, self.quota
            ))
        })
    }

    fn first_refused<'s>(&self, spent: &'s [Spent]) -> Option<&'s Spent> {
        let (mut entry, client) = (Entry::default(), Key::EVERYONE);
        spent.iter().find(|spent| {
            let charge = Charge::new(LIMIT, &self.quota, &client).cost(spent.units);
            !entry
                .decide(
                    Operation::Check,
                    &[charge],
                    Timestamp::from_micros(spent.at),
                )
                .is_allowed()
        })
    }

    fn first_full_window<'s>(&self, spent: &'s [Spent], part: usize) -> Option<&'s Spent> {
        let mut most = HashMap::new();
        for (charged_at, units) in self.refunds_across_resets(part) {
            *most
                .entry(self.window(charged_at))
                .or_insert(self.quota.units()) += units;
        }
        spent.iter().find(|spent| {
            let left = most
                .entry(self.window(spent.at))
                .or_insert(self.quota.units());
            let is_over = *left < spent.units;
            *left = left.saturating_sub(spent.units);
            is_over
        })
    }

    /// Finds the first unit above the promise of a sliding window, with or without leases.
    fn first_full_period<'s>(&self, spent: &'s [Spent], part: usize) -> Option<&'s Spent> {
        let returned: u64 = self
            .refunds_across_resets(part)
            .map(|(_, units)| units)
            .sum();
        let (mut sum, mut first) = (0, 0);
        spent.iter().find(|one| {
            sum += one.units;
            while one.at - spent[first].at >= self.period() {
                sum -= spent[first].units;
                first += 1;
            }
            sum > 2 * self.quota.units() + returned
        })
    }

    /// Returns the refunds of leases from before a reset, as the instants of the charges and the
    /// units given back.
    fn refunds_across_resets(&self, part: usize) -> impl Iterator<Item = (u64, u64)> {
        let refunds = self
            .calls
            .iter()
            .filter(move |(in_part, _)| *in_part == part);
        refunds.filter_map(move |(_, call)| {
            let Operation::Refund { taken_at } = call.operation else {
                return None;
            };
            let is_wiped = call.caller.request.is_none()
                && self.resets_before(part).any(|reset| reset.at >= taken_at);
            is_wiped.then(|| (taken_at.as_micros(), self.charged(part, call).units))
        })
    }

    fn resets_before(&self, part: usize) -> impl Iterator<Item = &'r Call> {
        self.resets
            .iter()
            .filter(move |(number, _)| *number <= part)
            .map(|(_, reset)| *reset)
    }

    /// Checks that an instance refunds no lease that it had before its own reset.
    fn no_refund_across_own_reset(&self) -> Result<(), String> {
        // The leases of each instance, by the instant of their charge.
        let mut leases: HashMap<(u64, Timestamp), Timestamp> = HashMap::new();
        for (_, charge) in self.charges() {
            let asked = leases
                .entry((charge.caller.instance, charge.at))
                .or_insert(charge.caller.sent);
            *asked = charge.caller.sent.max(*asked);
        }
        let after_reset = self
            .calls
            .iter()
            .filter(|(part, call)| *part > 0 && call.caller.request.is_none());
        for (part, call) in after_reset {
            let Operation::Refund { taken_at } = call.operation else {
                continue;
            };
            let instance = call.caller.instance;
            let Some(asked) = leases.get(&(instance, taken_at)) else {
                continue;
            };
            let mut resets = self.resets_before(*part).map(|reset| reset.caller);
            let is_wiped = |reset: &Caller| {
                reset.instance == instance && *asked < reset.sent && reset.sent < call.caller.sent
            };
            if resets.any(|reset| is_wiped(&reset)) {
                return Err(format!(
                    "{call:?} refunds what a reset of its instance has forgotten"
                ));
            }
        }
        Ok(())
    }

    fn period(&self) -> u64 {
        micros(self.quota.period())
    }

    /// Returns the number of a fixed window.
    fn window(&self, instant: u64) -> u64 {
        instant / self.period()
    }
}

/// Returns the term of a lease by the crate's documentation.
fn longest_lease(quota: &Quota, longest: Duration) -> u64 {
    let period = micros(quota.period());
    let longest_of_quota = match quota.algorithm() {
        Algorithm::TokenBucket | Algorithm::Gcra => quota.capacity() / 20 * period / quota.units(),
        Algorithm::FixedWindow => period / 10,
        _ => period / 100,
    };
    longest_of_quota.min(micros(longest))
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap()
}
