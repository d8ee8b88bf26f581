//! Tests all pairs of what a charge can be, over leases and regions.

use std::future::Ready;
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Decision, Key, Operation, Quota, Store, Timestamp};
use tower_quota_dev::simulation::{VirtualClock, pass, run};
use tower_quota_lease::{LeaseOptions, Leased, RegionShares, Regional};
use tower_quota_testkit::pairs::{
    Aspect, Effect, Fault, Meeting, Pairs, Promise, Server as Place, World,
};
use tower_quota_testkit::{ManualClock, SharedStore, block_on};

#[path = "../../../../tests/pairs/mod.rs"]
mod shared;

use shared::crossings;
use shared::server::{Link, LinkCut, Server};

fn day(units: u64) -> Quota {
    let day = Quota::per_day(units).fixed_window();
    day.calendar("Europe/Berlin").unwrap()
}

/// A link to a server whose clock follows the time of the runtime.
struct Timed {
    link: Link,
    clock: VirtualClock,
    of_server: ManualClock,
}

impl Store for Timed {
    type Error = LinkCut;
    type Future = Ready<Result<Decision, LinkCut>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.of_server.set(self.clock.now());
        self.link.apply(operation, charges)
    }
}

/// Two instances that lease from one server.
struct Leases {
    clock: VirtualClock,
    of_server: ManualClock,
    server: Server,
}

impl World for Leases {
    type Store = Leased<Timed>;

    const FAULTS: &'static [Fault] = &Server::FAULTS;

    async fn open(&mut self, instance: usize) -> Self::Store {
        let store = Timed {
            link: self.server.link(instance),
            clock: self.clock.clone(),
            of_server: self.of_server.clone(),
        };
        Leased::with_clock(store, LeaseOptions::default(), self.clock.clone())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        pass(span).await;
    }

    async fn fault(&mut self, fault: Fault, _: &[Key<'_>]) -> Effect {
        match fault {
            Fault::Restart(_) => Effect::Kept,
            fault => self.server.fault(fault),
        }
    }
}

async fn open_leases() -> Leases {
    let of_server = ManualClock::default();
    Leases {
        clock: VirtualClock::start(),
        server: Server::new(of_server.clone()),
        of_server,
    }
}

fn of_leases() -> Pairs {
    // Windows have leases of any size. A client with eight requests in 100 ms is hot.
    let quota = Quota::new(20, Duration::from_secs(10)).fixed_window();
    let mut pairs = Pairs::new(quota);
    pairs.calendar = Some(day(20));
    pairs.pace = Duration::from_millis(15);
    pairs.promise_all(Promise::bounded(
        "units are charged before an instance spends them",
    ));
    let without_forced = Promise::Bounded {
        quotas: 1,
        excludes_forced: true,
        by: "units are charged before an instance spends them; a debt ends no lease of another instance",
    };
    for aspect in [Aspect::Forced, Aspect::Settled] {
        pairs.promises.push((aspect, without_forced));
    }
    // The store decides these requests.
    for aspect in [
        Aspect::Wait,
        Aspect::Hold,
        Aspect::Penalty,
        Aspect::CountedRefusals,
    ] {
        pairs.promises.push((aspect, Promise::Exact));
    }
    pairs
}

#[test]
fn leases_keep_promises_of_all_pairs() {
    let mut pairs = of_leases();
    (pairs.burst, pairs.steps) = (11, 2);
    run(pairs.run(open_leases)).unwrap();
    crossings::compare::<Leases>("leases", &pairs);
}

#[test]
fn leases_keep_promises_of_small_world() {
    let mut pairs = of_leases().small_world(3);
    pairs.burst = 11;
    run(pairs.run(open_leases)).unwrap();
}

/// Two regions with a server each, and a home server.
struct Regions {
    clock: ManualClock,
    locals: [Server; 2],
    home: Server,
    regions: [Option<Region>; 2],
    is_changed: bool,
    was_changed: bool,
}

type Region = Regional<SharedStore<Link>, SharedStore<Link>>;

impl Regions {
    const NAMES: [&str; 2] = ["eu", "us"];

    fn shares(&self) -> RegionShares {
        let [shares, others] = [self.is_changed, !self.is_changed].map(|is_changed| {
            let shares = if is_changed { [50, 25] } else { [25, 25] };
            RegionShares::new(Self::NAMES.into_iter().zip(shares)).unwrap()
        });
        if self.was_changed {
            return shares.replacing(&others);
        }
        shares
    }
}

impl World for Regions {
    type Store = Region;

    const FAULTS: &'static [Fault] = &[
        Fault::Restart(0),
        Fault::Restart(1),
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::CutOwn(0),
        Fault::CutOwn(1),
        Fault::Forget,
        Fault::ForgetOwn(0),
        Fault::ForgetOwn(1),
        Fault::Reshare,
    ];

    async fn open(&mut self, instance: usize) -> Region {
        let local = SharedStore(self.locals[instance].link(instance));
        let home = SharedStore(self.home.link(instance));
        let (name, clock) = (Self::NAMES[instance], self.clock.clone());
        let region = Regional::with_clock(local, home, name, self.shares(), clock).unwrap();
        self.regions[instance] = Some(region.clone());
        region
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        self.clock.advance(span);
    }

    async fn fault(&mut self, fault: Fault, _: &[Key<'_>]) -> Effect {
        match fault {
            Fault::Restart(_) => Effect::Kept,
            Fault::Reshare => {
                (self.is_changed, self.was_changed) = (!self.is_changed, true);
                for region in self.regions.iter().flatten() {
                    region.set_shares(self.shares()).unwrap();
                }
                Effect::Kept
            }
            Fault::CutOwn(instance) => self.locals[instance].fault(Fault::Cut(instance)),
            Fault::JoinOwn(instance) => self.locals[instance].fault(Fault::Join(instance)),
            Fault::ForgetOwn(instance) => {
                self.locals[instance].fault(Fault::Forget);
                Effect::Lost(Place::Own(instance))
            }
            fault => self.home.fault(fault),
        }
    }

    fn server_of(&self, instance: usize, decided_at: Timestamp) -> Place {
        match decided_at.is_marked() {
            true => Place::Shared,
            false => Place::Own(instance),
        }
    }
}

const FOUR: Quota = Quota::new(4, Duration::from_secs(10));

async fn open_regions() -> Regions {
    let clock = ManualClock::default();
    let server = || Server::new(clock.clone());
    Regions {
        locals: [server(), server()],
        home: server(),
        clock,
        regions: [None, None],
        is_changed: false,
        was_changed: false,
    }
}

fn of_regions(quota: Quota) -> Pairs {
    let mut pairs = Pairs::new(quota);
    pairs.calendar = Some(day(4));
    pairs.promise_all(Promise::bounded("the sum of floors and pool"));
    let without_forced = Promise::Bounded {
        quotas: 1,
        excludes_forced: true,
        by: "the sum of floors and pool; a debt stays in the store that was charged",
    };
    for aspect in [Aspect::Forced, Aspect::Settled] {
        pairs.promises.push((aspect, without_forced));
    }
    let twice = Promise::Bounded {
        quotas: 2,
        excludes_forced: true,
        by: "the quota at home, and the floors of instances without this option",
    };
    for aspect in [Aspect::Penalty, Aspect::CountedRefusals] {
        pairs
            .exceptions
            .push((Meeting::TwoInstances, aspect, twice));
    }
    pairs
}

#[test]
fn regions_keep_promises_of_all_pairs() {
    let pairs = of_regions(FOUR);
    block_on(pairs.run(open_regions)).unwrap();
    crossings::compare::<Regions>("regions", &pairs);
}

#[test]
fn regions_keep_promises_of_small_world() {
    for quota in [FOUR, FOUR.fixed_window()] {
        let mut pairs = of_regions(quota).small_world(4);
        pairs.burst = 2;
        block_on(pairs.run(open_regions)).unwrap();
    }
}
