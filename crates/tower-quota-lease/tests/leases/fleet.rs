//! Runs a fleet of instances that share a store, under a load.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tower_quota_core::{Charge, Clock, Decision, Entry, Operation, Quota, Store, Timestamp};
use tower_quota_dev::simulation::{self, Network, VirtualClock};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::server::Server;
use crate::{Instance, LIMIT, hasher, key, pass};

/// A fleet, its load and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) quota: Quota,
    pub(crate) instances: u64,
    /// The mean time between two requests of an instance, in microseconds.
    pub(crate) gap: u64,
    /// The largest cost of a request.
    pub(crate) most_units: u64,
    pub(crate) span: Duration,
    pub(crate) loss_percent: u8,
    /// The longest delay of a message.
    pub(crate) delay: Duration,
    pub(crate) faults: bool,
    /// The times in which all instances are flooded.
    pub(crate) floods: Vec<Range<Duration>>,
    pub(crate) seed: u64,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The admitted requests, with the instant and the units spent.
    pub(crate) admitted: Vec<(Timestamp, u64)>,
    pub(crate) offered: u64,
    /// The calls to the store, in the background and for requests.
    pub(crate) calls: u64,
    pub(crate) requests: u64,
}

impl Fleet {
    /// Runs the fleet, and returns the outcome.
    pub(crate) async fn run(&self) -> Outcome {
        let clock = VirtualClock::start();
        let server = Arc::new(Server::new(clock.clone()));
        let tasks: Vec<_> = (0..self.instances)
            .map(|number| {
                let network = Network::new(Arc::clone(&server), self.seed ^ number << 32)
                    .loss_percent(self.loss_percent)
                    .delays(Duration::from_micros(100)..self.delay);
                let ahead = clock.ahead_by(Duration::from_secs(number * 77));
                let options = LeaseOptions::default().hasher(hasher(self.seed));
                let store = Leased::with_clock(network, options, ahead);
                tokio::spawn(self.clone().instance(store, clock.clone(), number))
            })
            .collect();
        let mut outcome = Outcome::default();
        for task in tasks {
            let one = task.await.unwrap();
            outcome.admitted.extend(one.admitted);
            outcome.offered += one.offered;
            outcome.calls += one.calls;
            outcome.requests += one.requests;
        }
        outcome.admitted.sort();
        outcome
    }

    /// Offers the load of one instance.
    async fn instance(self, store: Instance, clock: VirtualClock, number: u64) -> Outcome {
        let mut random = Rng::with_seed(self.seed.wrapping_mul(31) + number);
        let started = clock.now();
        let mut outcome = Outcome::default();
        let mut waiting = tokio::task::JoinSet::new();
        // Plan in microseconds. The runtime's timer has milliseconds, so several requests may be due at once.
        let mut next = Duration::ZERO;
        while next < self.span {
            next += Duration::from_micros(random.u64(0..=2 * self.gap_at(next)));
            wait_until(started + next, &clock).await;
            self.disturb(&mut random, &store).await;
            let units = random.u64(1..=self.most_units);
            let charge = key(0);
            let charges = [Charge::new(LIMIT, &self.quota, &charge).cost(units)];
            outcome.requests += 1;
            outcome.offered += units;
            let mut decision = Decision::default();
            if store.check_at_once(&charges, &mut decision) {
                // Record the present instant, because leased units were charged earlier and are
                // spent now.
                if decision.is_allowed() {
                    outcome.admitted.push((clock.now(), units));
                }
                continue;
            }
            let answer = store.check(&charges);
            let (store, clock) = (store.clone(), clock.clone());
            waiting.spawn(async move {
                let mut answer = pin!(answer);
                // Poll once, because a request that waits for a lease spends its units without a
                // call.
                let answered = poll_fn(|context| {
                    let by_lease = store.stats().by_lease;
                    let answer = answer.as_mut().poll(context);
                    answer.map(|answer| (answer.ok(), store.stats().by_lease > by_lease))
                });
                let (decision, is_leased) = answered.await;
                let decision = decision.filter(Decision::is_allowed)?;
                let spent_at = if is_leased {
                    clock.now()
                } else {
                    decision.at()
                };
                Some((spent_at, units))
            });
        }
        while let Some(admitted) = waiting.join_next().await {
            outcome.admitted.extend(admitted.unwrap());
        }
        outcome.calls = store.store().calls();
        pass(2_000).await;
        outcome
    }

    /// Returns the mean time between two requests.
    ///
    /// A flood costs the capacity of the quota in each of the first three milliseconds, and then
    /// every 100 ms.
    fn gap_at(&self, instant: Duration) -> u64 {
        let Some(flood) = self.floods.iter().find(|flood| flood.contains(&instant)) else {
            return self.gap;
        };
        flood_gap(
            instant - flood.start,
            self.instances * (1 + self.most_units),
            self.quota.capacity(),
        )
    }

    /// Sometimes pauses the instance, cuts it off, or lets it rest until the clients are cold.
    async fn disturb(&self, random: &mut Rng, store: &Instance) {
        if !self.faults {
            return;
        }
        match random.u32(0..2_000) {
            0 => pass(random.u64(1..2_000)).await,
            1 => store.store().cut(true),
            2..20 => store.store().cut(false),
            _ => {}
        }
    }
}

/// Returns the time between two requests, this long after the start of a flood.
///
/// The requests of all instances cost the capacity in each of the first three half milliseconds,
/// and then every 50 ms. `units` is the cost of one request of each instance.
pub(crate) fn flood_gap(since_start: Duration, units: u64, capacity: u64) -> u64 {
    let span = if since_start < Duration::from_millis(3) {
        500
    } else {
        50_000
    };
    (span * units / capacity).max(5)
}

/// Waits until an instant, or up to a millisecond less, which is the step of the runtime's timer.
pub(crate) async fn wait_until(instant: Timestamp, clock: &VirtualClock) {
    let wait = instant.since(clock.now());
    if wait >= Duration::from_millis(1) {
        simulation::pass(wait).await;
    }
}

impl Outcome {
    /// Finds the first admitted request above the quota.
    pub(crate) fn first_over(&self, quota: &Quota) -> Option<(Timestamp, u64)> {
        let (mut entry, client) = (Entry::default(), key(0));
        self.admitted.iter().copied().find(|(at, units)| {
            let charge = Charge::new(LIMIT, quota, &client).cost(*units);
            !entry.decide(Operation::Check, &[charge], *at).is_allowed()
        })
    }

    /// Returns the most units that were admitted within any period of the quota.
    pub(crate) fn most_in_period(&self, quota: &Quota) -> u64 {
        let (mut most, mut sum, mut first) = (0, 0, 0);
        for (at, units) in &self.admitted {
            sum += units;
            while at.since(self.admitted[first].0) >= quota.period() {
                sum -= self.admitted[first].1;
                first += 1;
            }
            most = most.max(sum);
        }
        most
    }

    pub(crate) fn admitted_units(&self) -> u64 {
        self.admitted.iter().map(|(_, units)| units).sum()
    }
}
