//! Regions without a network, whose time, links and data a test changes.

mod audit;
mod request;
mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower_quota_core::{Charge, ChargeMode, Clock, Operation, Penalty, Quota, Store, Timestamp};
use tower_quota_lease::{RegionShares, Regional};
use tower_quota_testkit::ManualClock;

pub(crate) use self::request::{Addition, Kind};
pub(crate) use self::server::Way;
use self::server::{Ahead, Link, Server, now};
use crate::key;

const NAMES: [&str; 3] = ["asia", "eu", "us"];
/// The mark of an instant of the home store.
const HOME: u64 = 1 << 62;
/// The time in which the operator's programs read a new document.
const LEARN: Duration = Duration::from_secs(59);

struct Region {
    store: Regional<Link, Link>,
    local: Link,
    home: Link,
    has_learnt: bool,
}

/// Units that a request has, and the store that counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) region: usize,
    pub(crate) by_home: bool,
    pub(crate) at: Timestamp,
    pub(crate) units: u64,
    /// The end of a hold, by the time of the world.
    until: Timestamp,
    /// Whether the shares are still those of the check.
    is_renewable: bool,
}

pub(crate) struct World {
    clock: ManualClock,
    quota: Quota,
    pub(crate) kind: Kind,
    regions: Vec<Region>,
    document: RegionShares,
    changed_at: Timestamp,
    pub(crate) taken: Vec<Taken>,
    /// The most units that were held at once.
    most_held: u64,
}

pub(crate) fn shares(percents: &[u32]) -> RegionShares {
    RegionShares::new(NAMES.into_iter().zip(percents.iter().copied())).unwrap()
}

impl World {
    pub(crate) fn new(quota: Quota, percents: &[u32]) -> Self {
        let clock = ManualClock::default();
        let document = shares(percents);
        let ahead = |by| Ahead {
            clock: clock.clone(),
            by,
        };
        let home = Server::new(ahead(Duration::ZERO));
        let mut regions = Vec::new();
        for number in 0..percents.len() {
            let link = |server: Server| Link {
                server,
                way: Arc::new(Mutex::new(Way::Open)),
            };
            let local = link(Server::new(ahead(skew(number))));
            let home = link(home.clone());
            regions.push(Region {
                store: start(&clock, number, &local, &home, &document),
                local,
                home,
                has_learnt: true,
            });
        }
        Self {
            changed_at: clock.now(),
            clock,
            quota,
            kind: Kind::Plain,
            regions,
            document,
            taken: Vec::new(),
            most_held: 0,
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        let until_learnt = LEARN.saturating_sub(self.clock.now().since(self.changed_at));
        let is_late = span > until_learnt;
        if is_late {
            self.clock.advance(until_learnt);
            for region in 0..self.regions.len() {
                self.learn(region);
            }
        }
        self.clock
            .advance(if is_late { span - until_learnt } else { span });
    }

    pub(crate) fn check(&mut self, region: usize, cost: u64) -> bool {
        self.check_with(region, cost, Addition::None)
    }

    /// Returns whether the request is admitted.
    pub(crate) fn check_with(&mut self, region: usize, cost: u64, addition: Addition) -> bool {
        let (client, penalty) = (key(0), Penalty::after(3));
        let charge = self.kind.charge(&self.quota, &client, &penalty).cost(cost);
        let tried = Quota::per_second(2);
        let charges = match addition {
            Addition::None => vec![charge],
            Addition::AtMost => vec![charge.at_most()],
            Addition::Shadow => vec![charge, Charge::new("tried", &tried, &client).shadow()],
        };
        let Ok(decision) = now(self.regions[region].store.check(&charges)) else {
            return false;
        };
        if !decision.is_allowed() {
            return false;
        }
        let at = decision.at().as_micros();
        self.taken.push(Taken {
            region,
            by_home: at & HOME != 0,
            at: Timestamp::from_micros(at & !HOME),
            units: decision.statuses()[0].taken,
            until: self.clock.now() + self.quota.period(),
            is_renewable: true,
        });
        let now = self.clock.now();
        let held = self.taken.iter().filter(|taken| taken.until > now);
        self.most_held = self.most_held.max(held.map(|taken| taken.units).sum());
        true
    }

    /// Takes units whether or not they fit, which do not count as admitted.
    pub(crate) fn force(&self, region: usize, units: u64) {
        let (client, penalty) = (key(0), Penalty::after(3));
        let charge = self.kind.charge(&self.quota, &client, &penalty);
        let charge = charge.cost(units).in_mode(ChargeMode::Forced);
        let _ = now(self.regions[region].store.check(&[charge]));
    }

    /// Settles the request with this number by more units.
    pub(crate) fn settle(&mut self, number: usize, units: u64) {
        let taken = self.taken[number];
        let taken_at = marked(&taken);
        if self.apply(taken.region, Operation::Surcharge { taken_at }, units) {
            self.taken[number].units += units;
        }
    }

    pub(crate) fn refund(&mut self, number: usize) {
        let taken = self.taken[number];
        let refund = Operation::Refund {
            taken_at: marked(&taken),
        };
        // A lost refund leaves the units in the store, so they are free for nobody.
        self.apply(taken.region, refund, taken.units);
        self.taken[number].units = 0;
    }

    /// Extends the hold with this number.
    ///
    /// A hold that lives on after a change of shares is still in the part of its former share.
    pub(crate) fn renew(&mut self, number: usize) {
        let taken = self.taken[number];
        let renewal = Operation::Renew {
            taken_at: marked(&taken),
        };
        let is_held = taken.until > self.clock.now();
        if is_held && taken.is_renewable && self.apply(taken.region, renewal, taken.units) {
            self.taken[number].until = self.clock.now() + self.quota.period();
        }
    }

    pub(crate) fn apply(&self, region: usize, operation: Operation, units: u64) -> bool {
        let (client, penalty) = (key(0), Penalty::after(3));
        let charge = self.kind.charge(&self.quota, &client, &penalty).cost(units);
        now(self.regions[region].store.apply(operation, &[charge])).is_ok()
    }

    pub(crate) fn reset(&mut self, region: usize) {
        let is_home_open = *self.regions[region].home.way.lock().unwrap() != Way::LosesCalls;
        let is_local_open = *self.regions[region].local.way.lock().unwrap() != Way::LosesCalls;
        self.apply(region, Operation::Reset, 1);
        if is_home_open {
            self.forgive(None);
        }
        if is_local_open {
            self.forgive(Some(region));
        }
    }

    /// Loses the data of a region, or else of the home store.
    pub(crate) fn lose(&mut self, region: Option<usize>) {
        match region {
            Some(region) => self.regions[region].local.server.lose(),
            None => self.regions[0].home.server.lose(),
        }
        self.forgive(region);
    }

    /// Removes the units that a store has forgotten.
    fn forgive(&mut self, region: Option<usize>) {
        self.taken.retain(|taken| match region {
            Some(region) => taken.by_home || taken.region != region,
            None => !taken.by_home,
        });
    }

    pub(crate) fn to_home(&self, region: usize, way: Way) {
        *self.regions[region].home.way.lock().unwrap() = way;
    }

    pub(crate) fn to_local(&self, region: usize, way: Way) {
        *self.regions[region].local.way.lock().unwrap() = way;
    }

    /// Replaces the document, which each region learns within a minute.
    pub(crate) fn publish(&mut self, percents: &[u32]) {
        for region in 0..self.regions.len() {
            self.learn(region);
        }
        self.document = shares(percents).replacing(&self.document);
        self.changed_at = self.clock.now();
        for taken in &mut self.taken {
            taken.is_renewable = false;
        }
        for region in &mut self.regions {
            region.has_learnt = false;
        }
    }

    pub(crate) fn learn(&mut self, number: usize) {
        let region = &mut self.regions[number];
        if !region.has_learnt {
            region.store.set_shares(self.document.clone()).unwrap();
            region.has_learnt = true;
            for taken in &mut self.taken {
                taken.is_renewable &= taken.region != number;
            }
        }
    }

    /// Starts the program of a region again, which reads the present document.
    pub(crate) fn restart(&mut self, number: usize) {
        self.learn(number);
        let region = &mut self.regions[number];
        let document = &self.document;
        region.store = start(&self.clock, number, &region.local, &region.home, document);
    }

    pub(crate) fn start_with(&mut self, number: usize, shares: &RegionShares) {
        let region = &mut self.regions[number];
        region.store = start(&self.clock, number, &region.local, &region.home, shares);
    }

    pub(crate) fn read(&self, region: usize, document: &RegionShares) {
        let store = &self.regions[region].store;
        store.set_shares(document.clone()).unwrap();
    }

    pub(crate) fn stores(&self) -> u64 {
        self.regions.len() as u64 + 1
    }

    pub(crate) fn regions(&self) -> usize {
        self.regions.len()
    }
}

/// Returns the lead of the store of a region.
fn skew(region: usize) -> Duration {
    Duration::from_millis(700) * u32::try_from(region).unwrap()
}

fn marked(taken: &Taken) -> Timestamp {
    Timestamp::from_micros(taken.at.as_micros() | if taken.by_home { HOME } else { 0 })
}

fn start(
    clock: &ManualClock,
    region: usize,
    local: &Link,
    home: &Link,
    shares: &RegionShares,
) -> Regional<Link, Link> {
    let (local, home, clock) = (local.clone(), home.clone(), clock.clone());
    Regional::with_clock(local, home, NAMES[region], shares.clone(), clock).unwrap()
}
