//! Runs a fleet with several limits on two keys, costs, refunds and resets.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tower_quota_core::{Charge, Clock, Decision, Key, Name, Operation, Quota, Store, Timestamp};
use tower_quota_dev::simulation::{Network, VirtualClock};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::fleet::{flood_gap, wait_until};
use crate::recorder::{Call, Link, Recorder};
use crate::server::Server;
use crate::{hasher, key, pass};

/// The number of limits, which are two of each client, and one of all.
const LIMITS: usize = 3;
const NAMES: [Name; LIMITS] = [Name::new("one"), Name::new("other"), Name::new("everyone")];
const CLIENTS: u64 = 2;
/// The largest cost of a request in the calm.
pub(crate) const MOST_UNITS: u64 = 3;
/// The divisor of a quota for the largest cost in a flood.
const FLOOD_SHARE: u64 = 40;
/// The number of counters, of the limits of each client and the limit of all.
pub(crate) const COUNTERS: usize = 5;

type Instance = Leased<Link>;

/// A fleet, its load and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    pub(crate) quotas: [Quota; LIMITS],
    /// The longest term of a lease.
    pub(crate) longest: Duration,
    pub(crate) instances: u64,
    /// The mean time between two requests of an instance in the calm, in microseconds.
    pub(crate) gap: u64,
    /// The limits of most requests in the calm, a bit for each. These requests are of the first
    /// client.
    pub(crate) limits: u8,
    pub(crate) span: Duration,
    /// The longest delay of a message.
    pub(crate) delay: Duration,
    pub(crate) loss_percent: u8,
    pub(crate) floods: Vec<Flood>,
    /// The share of requests with a refund afterwards.
    pub(crate) refund_percent: u8,
    pub(crate) resets: bool,
    pub(crate) seed: u64,
}

/// A time in which all instances get many requests of one client with the same limits.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) time: Range<Duration>,
    pub(crate) client: u64,
    /// The limits, a bit for each.
    pub(crate) limits: u8,
}

/// An admitted request.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) instance: u64,
    pub(crate) id: u64,
    /// The instant at which the request was decided. Without a call, the request spent its units then.
    pub(crate) at: Timestamp,
    pub(crate) asked: Asked,
    pub(crate) is_refunded: bool,
    decision: Decision,
}

/// The charges of a request: a client, and a cost for each limit that the request has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    client: u64,
    costs: [u64; LIMITS],
    is_refundable: bool,
}

/// The result of a run, with the admitted requests, and all calls in the order of the store.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) admitted: Vec<Admitted>,
    pub(crate) calls: Vec<Call>,
}

/// Keeps refunds and resets apart, because a refund of a charge from before a reset gives back
/// units of later charges.
#[derive(Debug, Default)]
struct Resets {
    is_resetting: AtomicBool,
    refunds_under_way: AtomicU64,
    last: AtomicU64,
}

impl Asked {
    /// Returns the charged counters with their units.
    pub(crate) fn units(&self) -> impl Iterator<Item = (usize, u64)> {
        let counters = self.costs.iter().enumerate().filter(|(_, cost)| **cost > 0);
        counters.map(|(limit, cost)| (counter(limit, self.client), *cost))
    }

    /// Calls a function with the charges.
    fn with_charges<T>(
        &self,
        quotas: &[Quota; LIMITS],
        call: impl FnOnce(&[Charge<'_>]) -> T,
    ) -> T {
        let (client, everyone) = (key(self.client), Key::EVERYONE);
        let charges = self
            .costs
            .iter()
            .zip(quotas)
            .zip(NAMES)
            .enumerate()
            .filter(|(_, ((cost, _), _))| **cost > 0);
        let charges: Vec<Charge<'_>> = charges
            .map(|(limit, ((cost, quota), name))| {
                let charge = Charge::new(name, quota, if limit == 2 { &everyone } else { &client })
                    .cost(*cost);
                if self.is_refundable {
                    charge.refundable()
                } else {
                    charge
                }
            })
            .collect();
        call(&charges)
    }
}

/// Returns the number of a limit's counter.
const fn counter(limit: usize, client: u64) -> usize {
    if limit == 2 {
        4
    } else {
        limit + 2 * if client == 0 { 0 } else { 1 }
    }
}

/// Returns the limit of a counter.
pub(crate) const fn limit_of(counter: usize) -> usize {
    if counter == 4 { 2 } else { counter % 2 }
}

fn counter_of(charge: &Charge<'_>) -> usize {
    let limit = NAMES
        .iter()
        .position(|name| *name == charge.name())
        .unwrap();
    counter(limit, u64::from(*charge.key() == key(1)))
}

impl Mixed {
    /// Runs the fleet.
    pub(crate) async fn run(&self) -> Run {
        let clock = VirtualClock::start();
        let store = Server::new(clock.clone());
        let (server, resets) = (
            Arc::new(Recorder::new(store, counter_of)),
            Arc::new(Resets::default()),
        );
        let mut instances = JoinSet::new();
        for number in 0..self.instances {
            let network = Network::new(Arc::clone(&server), self.seed ^ number << 32)
                .loss_percent(self.loss_percent)
                .delays(Duration::from_micros(100)..self.delay);
            let link = Link::new(network, clock.clone(), number);
            let options = LeaseOptions::default()
                .longest(self.longest)
                .hasher(hasher(self.seed));
            let store = Leased::with_clock(
                link,
                options,
                clock.ahead_by(Duration::from_secs(number * 77)),
            );
            let load = Load {
                fleet: self.clone(),
                number,
                store,
                clock: clock.clone(),
                resets: Arc::clone(&resets),
                random: Rng::with_seed(self.seed.wrapping_mul(31) + number),
                admitted: Arc::default(),
            };
            instances.spawn(load.run());
        }
        let admitted = instances.join_all().await.into_iter().flatten().collect();
        Run {
            admitted,
            calls: server.take(),
        }
    }

    fn flood_at(&self, instant: Duration) -> Option<&Flood> {
        self.floods
            .iter()
            .find(|flood| flood.time.contains(&instant))
    }

    /// Returns the mean time between two requests. A flood costs the capacity of its first limit.
    fn gap_at(&self, instant: Duration) -> u64 {
        let Some(flood) = self.flood_at(instant) else {
            return self.gap;
        };
        let limit = (0..LIMITS)
            .find(|limit| flood.limits & 1 << limit != 0)
            .unwrap();
        let capacity = self.quotas[limit].capacity();
        let mean_units = (3 * (1 + MOST_UNITS) + 1 + capacity / FLOOD_SHARE) / 8;
        flood_gap(
            instant - flood.time.start,
            self.instances * mean_units,
            capacity,
        )
    }
}

/// The load of one instance.
struct Load {
    fleet: Mixed,
    number: u64,
    store: Instance,
    clock: VirtualClock,
    resets: Arc<Resets>,
    random: Rng,
    admitted: Arc<Mutex<Vec<Admitted>>>,
}

impl Load {
    async fn run(mut self) -> Vec<Admitted> {
        let started = self.clock.now();
        let (mut waiting, mut id) = (JoinSet::new(), self.number << 32);
        // Plan in microseconds. The runtime's timer has milliseconds, so several requests may be due at once.
        let mut next = Duration::ZERO;
        while next < self.fleet.span {
            next += Duration::from_micros(self.random.u64(0..=2 * self.fleet.gap_at(next)));
            wait_until(started + next, &self.clock).await;
            id += 1;
            match self.random.u32(0..2_000) {
                0 => pass(self.random.u64(1..500)).await,
                1 if self.fleet.loss_percent > 0 => self.store.store().network().cut(true),
                2..30 => self.store.store().network().cut(false),
                30..33 if self.fleet.resets => self.reset(id).await,
                33..1_000 if self.random.u8(0..50) < self.fleet.refund_percent => self.refund(),
                _ => self.request(id, next, &mut waiting),
            }
        }
        while waiting.join_next().await.is_some() {}
        core::mem::take(&mut self.admitted.lock().unwrap())
    }

    /// Makes a request. Sometimes drops the request before the answer.
    fn request(&mut self, id: u64, now: Duration, waiting: &mut JoinSet<()>) {
        let asked = self.draw(now);
        let clock = self.clock.clone();
        let mut decision = Decision::default();
        let quotas = &self.fleet.quotas;
        let (instance, admitted) = (self.number, Arc::clone(&self.admitted));
        let record = move |decision: Decision| {
            if decision.is_allowed() {
                let (at, is_refunded) = (clock.now(), false);
                admitted.lock().unwrap().push(Admitted {
                    instance,
                    id,
                    at,
                    asked,
                    is_refunded,
                    decision,
                });
            }
        };
        if asked.with_charges(quotas, |charges| {
            self.store.check_at_once(charges, &mut decision)
        }) {
            return record(decision);
        }
        let mut answer = asked.with_charges(quotas, |charges| {
            self.store
                .store()
                .for_request(id, || self.store.check(charges))
        });
        // Keep the store, because a request that has waited for a lease may call the store later.
        let store = self.store.clone();
        let answer = poll_fn(move |context| {
            let poll = || answer.as_mut().poll(context);
            store.store().for_request(id, poll)
        });
        let patience = match self.random.u8(0..30) {
            0 => self.fleet.delay * self.random.u32(0..20) / 10,
            _ => Duration::from_secs(10),
        };
        waiting.spawn(async move {
            if let Ok(Ok(decision)) = tokio::time::timeout(patience, answer).await {
                record(decision);
            }
        });
    }

    /// Draws the charges of a request.
    fn draw(&mut self, now: Duration) -> Asked {
        let flood = self
            .fleet
            .flood_at(now)
            .filter(|_| self.random.u8(0..8) > 0);
        let (client, limits) = match flood {
            Some(flood) => (flood.client, flood.limits),
            None if self.random.u8(0..4) > 0 => (0, self.fleet.limits),
            None => (self.random.u64(0..CLIENTS), self.random.u8(1..1 << LIMITS)),
        };
        // Small costs spend the leases, and large costs spend the rest of the store.
        let is_large = flood.is_some() && self.random.u8(0..4) == 0;
        let mut costs = [0; LIMITS];
        for (limit, cost) in costs
            .iter_mut()
            .enumerate()
            .filter(|(limit, _)| limits & 1 << limit != 0)
        {
            let most = if is_large {
                self.fleet.quotas[limit].capacity() / FLOOD_SHARE
            } else {
                MOST_UNITS
            };
            *cost = self.random.u64(1..=most.max(1));
        }
        Asked {
            client,
            costs,
            is_refundable: self.random.u8(0..20) == 0,
        }
    }

    /// Refunds one of the last requests of this instance.
    fn refund(&mut self) {
        if self.resets.is_resetting.load(Ordering::Relaxed) {
            return;
        }
        let mut admitted = self.admitted.lock().unwrap();
        let last_reset = self.resets.last.load(Ordering::Relaxed);
        let from = admitted.len().saturating_sub(30);
        let mut candidates: Vec<&mut Admitted> = admitted[from..]
            .iter_mut()
            .filter(|one| !one.is_refunded && one.decision.at().as_micros() > last_reset)
            .collect();
        if candidates.is_empty() {
            return;
        }
        let one = candidates.swap_remove(self.random.usize(0..candidates.len()));
        one.is_refunded = true;
        let refund = one.decision.refund().unwrap();
        let answer = one.asked.with_charges(&self.fleet.quotas, |charges| {
            self.store
                .store()
                .for_request(one.id, || self.store.apply(refund, charges))
        });
        self.resets
            .refunds_under_way
            .fetch_add(1, Ordering::Relaxed);
        let resets = Arc::clone(&self.resets);
        tokio::spawn(async move {
            let _ = answer.await;
            resets.refunds_under_way.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Resets some limits of a client, or the limit of all.
    async fn reset(&mut self, id: u64) {
        if self.resets.is_resetting.swap(true, Ordering::Relaxed) {
            return;
        }
        while self.resets.refunds_under_way.load(Ordering::Relaxed) > 0 {
            pass(1).await;
        }
        let limits = self.random.u8(1..1 << LIMITS);
        let costs = [0, 1, 2].map(|limit| u64::from(limits & 1 << limit != 0));
        let asked = Asked {
            client: self.random.u64(0..CLIENTS),
            costs,
            is_refundable: false,
        };
        let answer = asked.with_charges(&self.fleet.quotas, |charges| {
            self.store
                .store()
                .for_request(id, || self.store.apply(Operation::Reset, charges))
        });
        // Ignore the answer, because a lost reset may have reached the store.
        let _ = answer.await;
        self.resets
            .last
            .store(self.clock.now().as_micros(), Ordering::Relaxed);
        self.resets.is_resetting.store(false, Ordering::Relaxed);
    }
}
