//! Tests that regions together never exceed the quota, and that each region serves its floor.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use proptest::prelude::*;
use tower_quota_core::{
    Algorithm, Charge, Clock, Decision, Entry, MemoryStore, Operation, Penalty, Quota, Store,
    Timestamp,
};
use tower_quota_dev::simulation::{Network, VirtualClock, run};
use tower_quota_lease::{LeaseOptions, Leased, RegionShares, RegionSharesError, Regional};

use crate::{LIMIT, key, pass};

const HOME: u64 = 1 << 62;
/// The lead of each region's store over the store of the previous region.
const AHEAD: Duration = Duration::from_secs(1);

type Local = Network<MemoryStore>;
type Home = Leased<Network<MemoryStore>>;

struct World {
    clock: VirtualClock,
    home: Arc<MemoryStore>,
    shares: RegionShares,
    seed: u64,
}

struct Region {
    store: Regional<Local, Home>,
    to_home: Local,
    ahead: Duration,
}

impl World {
    fn new(shares: &[(&str, u32)], seed: u64) -> Self {
        let clock = VirtualClock::start();
        Self {
            home: Arc::new(MemoryStore::with_clock(1_000, clock.clone())),
            clock,
            shares: RegionShares::new(shares.iter().copied()).unwrap(),
            seed,
        }
    }

    /// Makes a region with a round trip of 40 ms to the home region.
    fn region(&self, name: &str) -> Region {
        self.region_at(name, Duration::from_millis(20), LeaseOptions::default())
    }

    fn region_at(&self, name: &str, delay: Duration, options: LeaseOptions) -> Region {
        let number = self.shares_before(name);
        let ahead = AHEAD * number;
        let store = MemoryStore::with_clock(1_000, self.clock.ahead_by(ahead));
        let local = Network::new(Arc::new(store), self.seed + u64::from(number));
        let to_home = Network::new(Arc::clone(&self.home), self.seed ^ u64::from(number))
            .delays(delay..delay + Duration::from_millis(1));
        let home = Leased::with_clock(to_home.clone(), options, self.clock.clone());
        let shares = self.shares.clone();
        let store = Regional::with_clock(local, home, name, shares, self.clock.clone()).unwrap();
        Region {
            store,
            to_home,
            ahead,
        }
    }

    fn shares_before(&self, name: &str) -> u32 {
        let names = ["asia", "eu", "us"];
        names.iter().map(|known| u32::from(*known < name)).sum()
    }
}

async fn check(region: &Region, quota: &Quota, cost: u64) -> Decision {
    let key = key(0);
    let charge = Charge::new(LIMIT, quota, &key).cost(cost);
    region.store.check(&[charge]).await.unwrap()
}

async fn admitted(region: &Region, quota: &Quota, requests: u64) -> u64 {
    let mut admitted = 0;
    for _ in 0..requests {
        admitted += u64::from(check(region, quota, 1).await.is_allowed());
    }
    admitted
}

/// Draws a quota, and the shares of two or three regions.
fn setting() -> impl Strategy<Value = (Quota, Vec<u32>)> {
    let algorithms = vec![
        Algorithm::TokenBucket,
        Algorithm::Gcra,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
    ];
    let quota = (
        1..400_u64,
        300..4_000_u64,
        prop::sample::select(algorithms),
        1..600_u64,
    );
    let quota = quota.prop_map(|(units, millis, algorithm, burst)| {
        let quota = Quota::new(units, Duration::from_millis(millis));
        let quota = quota.try_algorithm(algorithm).unwrap();
        quota.try_burst(burst).unwrap_or(quota)
    });
    (quota, prop::collection::vec(1..33_u32, 2..=3))
}

/// Finds the first unit above the quota. Instants are the instants of the charges, by the clock of
/// each store.
fn first_over(quota: &Quota, mut taken: Vec<(u64, Duration, u64)>) -> Option<u64> {
    if quota.algorithm() == Algorithm::FixedWindow {
        let period = u64::try_from(quota.period().as_micros()).unwrap();
        let mut windows: HashMap<u64, u64> = HashMap::new();
        for (at, _, units) in &taken {
            *windows.entry(at / period).or_default() += units;
        }
        return windows
            .into_iter()
            .find_map(|(window, units)| (units > quota.units()).then_some(window));
    }
    for (at, ahead, _) in &mut taken {
        *at -= u64::try_from(ahead.as_micros()).unwrap();
    }
    taken.sort_unstable();
    let (mut entry, client) = (Entry::default(), key(0));
    let over = taken.into_iter().find(|(at, _, units)| {
        let charge = Charge::new(LIMIT, quota, &client).cost(*units);
        let at = Timestamp::from_micros(*at);
        !entry.decide(Operation::Check, &[charge], at).is_allowed()
    });
    over.map(|(at, _, _)| at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn regions_together_never_exceed_quota(
        (quota, percents) in setting(),
        gap in 1..40_u64,
        seed in any::<u64>(),
    ) {
        let over = run(async {
            let names = ["asia", "eu", "us"];
            let shares: Vec<(&str, u32)> = names.into_iter().zip(percents).collect();
            let world = World::new(&shares, seed);
            let mut random = Rng::with_seed(seed);
            let regions: Vec<Region> = shares
                .iter()
                .map(|(name, _)| {
                    let delay = Duration::from_millis(random.u64(1..75));
                    world.region_at(name, delay, LeaseOptions::default())
                })
                .collect();
            let mut requests = tokio::task::JoinSet::new();
            for _ in 0..400 {
                pass(random.u64(0..2 * gap)).await;
                let region = random.choice(&regions).unwrap();
                if random.u8(0..30) == 0 {
                    region.to_home.cut(random.bool());
                }
                let (store, ahead) = (region.store.clone(), region.ahead);
                let units = random.u64(1..4);
                requests.spawn(async move {
                    let key = key(0);
                    let charges = [Charge::new(LIMIT, &quota, &key).cost(units)];
                    let mut decision = Decision::default();
                    if !store.check_at_once(&charges, &mut decision) {
                        decision = store.check(&charges).await.unwrap_or_default();
                    }
                    let at = decision.at().as_micros();
                    let ahead = if at & HOME == 0 { ahead } else { Duration::ZERO };
                    let is_taken = decision.is_allowed() && !decision.statuses().is_empty();
                    is_taken.then_some((at & !HOME, ahead, units))
                });
            }
            let mut taken = Vec::new();
            while let Some(request) = requests.join_next().await {
                taken.extend(request.unwrap());
            }
            first_over(&quota, taken)
        });
        prop_assert_eq!(over, None);
    }
}

#[test]
fn region_without_home_serves_floor() {
    run(async {
        let world = World::new(&[("eu", 30), ("us", 20)], 1);
        let (eu, us) = (world.region("eu"), world.region("us"));
        let quota = Quota::per_hour(100).fixed_window();
        assert_eq!(admitted(&us, &quota, 100).await, 70);
        eu.to_home.cut(true);
        assert_eq!(admitted(&eu, &quota, 50).await, 30);
        eu.to_home.cut(false);
        assert_eq!(admitted(&eu, &quota, 50).await, 0);
    });
}

#[test]
fn client_in_region_gets_floor_and_pool() {
    for quota in [
        Quota::per_second(1_000),
        Quota::per_second(500).sliding_log(),
        Quota::per_second(200).fixed_window(),
    ] {
        run(async {
            let world = World::new(&[("eu", 30), ("us", 20)], 1);
            let eu = world.region("eu");
            // Spend the burst first.
            let _ = admitted_of_flood(&world, &eu, &quota, quota.period()).await;
            let span = 10 * quota.period();
            let units = admitted_of_flood(&world, &eu, &quota, span).await;
            #[expect(clippy::cast_precision_loss, reason = "a share in percent")]
            let share = units as f64 / (0.8 * 10.0 * quota.units() as f64);
            // The flood may reach an eleventh window.
            assert!((0.95..1.1).contains(&share), "{share} of {quota:?}");
        });
    }
}

/// Makes 2,000 requests a second.
async fn admitted_of_flood(world: &World, region: &Region, quota: &Quota, span: Duration) -> u64 {
    let started = world.clock.now();
    let mut requests = tokio::task::JoinSet::new();
    while world.clock.now().since(started) < span {
        for _ in 0..10 {
            let (store, quota) = (region.store.clone(), *quota);
            requests.spawn(async move {
                let key = key(0);
                let charge = Charge::new(LIMIT, &quota, &key);
                store.check(&[charge]).await.unwrap().is_allowed()
            });
        }
        pass(5).await;
    }
    let admitted = requests.join_all().await;
    admitted.into_iter().map(u64::from).sum()
}

#[test]
fn refund_reaches_store_that_was_charged() {
    run(async {
        let world = World::new(&[("eu", 30)], 1);
        let eu = world.region("eu");
        let quota = Quota::per_hour(10).fixed_window();
        let key = key(0);
        let charge = Charge::new(LIMIT, &quota, &key);
        let mut by_pool = check(&eu, &quota, 7).await;
        let mut by_floor = check(&eu, &quota, 3).await;
        for (decision, units) in [(&mut by_floor, 3), (&mut by_pool, 7)] {
            assert!(decision.is_allowed());
            assert!(!check(&eu, &quota, 1).await.is_allowed());
            let refund = decision.refund().unwrap();
            eu.store.apply(refund, &[charge.cost(units)]).await.unwrap();
            assert!(check(&eu, &quota, units).await.is_allowed());
        }
    });
}

#[test]
fn reset_reaches_both_stores() {
    run(async {
        let world = World::new(&[("eu", 30)], 1);
        let eu = world.region("eu");
        let quota = Quota::per_hour(10).fixed_window();
        let key = key(0);
        assert_eq!(admitted(&eu, &quota, 20).await, 10);
        let charge = Charge::new(LIMIT, &quota, &key);
        eu.store.apply(Operation::Reset, &[charge]).await.unwrap();
        assert_eq!(admitted(&eu, &quota, 20).await, 10);
    });
}

#[test]
fn small_and_penalised_quotas_count_at_home() {
    run(async {
        let world = World::new(&[("eu", 30), ("us", 5)], 1);
        let (eu, us) = (world.region("eu"), world.region("us"));
        // The share of 5 % is less than a unit.
        let small = Quota::per_hour(10).fixed_window();
        assert_eq!(admitted(&us, &small, 20).await, 10);
        assert_eq!(admitted(&eu, &small, 20).await, 0);

        let (quota, penalty) = (Quota::per_hour(100).fixed_window(), Penalty::after(3));
        let key = key(7);
        let charge = Charge::new(LIMIT, &quota, &key).penalty(&penalty);
        let mut admitted = 0;
        for region in [&eu, &us] {
            for _ in 0..101 {
                let decision = region.store.check(&[charge]).await.unwrap();
                admitted += u64::from(decision.is_allowed());
            }
        }
        assert_eq!(admitted, 100);
    });
}

#[test]
fn limit_counted_at_home_takes_request_home() {
    run(async {
        let world = World::new(&[("eu", 30), ("us", 20)], 1);
        let eu = world.region("eu");
        let (quota, penalty) = (Quota::per_hour(100).fixed_window(), Penalty::after(3));
        let key = key(0);
        let plain = Charge::new(LIMIT, &quota, &key);
        let penalised = Charge::new("logins", &quota, &key).penalty(&penalty);
        let mut admitted_by_pool = 0;
        for _ in 0..100 {
            let decision = eu.store.check(&[plain, penalised]).await.unwrap();
            admitted_by_pool += u64::from(decision.is_allowed());
        }
        assert_eq!(admitted_by_pool, 50);
        // Requests without the other limit still have the floor.
        assert_eq!(admitted(&eu, &quota, 100).await, 30);
    });
}

#[test]
fn shadow_is_judged_by_floor() {
    run(async {
        let world = World::new(&[("eu", 30), ("us", 20)], 1);
        let eu = world.region("eu");
        let (quota, tried) = (Quota::per_hour(1_000), Quota::per_hour(100).fixed_window());
        let key = key(0);
        let charges = [
            Charge::new(LIMIT, &quota, &key),
            Charge::new("tried", &tried, &key).shadow(),
        ];
        for number in 1..=100 {
            let decision = eu.store.check(&charges).await.unwrap();
            assert!(decision.is_allowed());
            let is_within_floor = decision.would_refuse().next().is_none();
            assert_eq!(is_within_floor, number <= 30, "{number}");
        }
    });
}

#[test]
fn refusal_has_shorter_retry_time_and_limit() {
    run(async {
        let world = World::new(&[("eu", 10)], 1);
        let eu = world.region("eu");
        let quota = Quota::per_hour(60);
        assert_eq!(admitted(&eu, &quota, 60).await, 60);
        let refused = check(&eu, &quota, 1).await;
        // The floor refills a unit in ten minutes, and the pool nine.
        let retry_after = refused.retry_after().unwrap();
        assert!(retry_after < Duration::from_secs(67), "{retry_after:?}");
        assert_eq!(refused.statuses()[0].limit, 60);
    });
}

#[test]
fn lower_share_applies_before_higher_share() {
    run(async {
        let world = World::new(&[("eu", 30), ("us", 30)], 1);
        let eu = world.region("eu");
        eu.to_home.cut(true);
        let quota = Quota::per_hour(100).fixed_window();
        let shares = |eu, us| RegionShares::new([("eu", eu), ("us", us)]).unwrap();
        eu.store.set_shares(shares(10, 50)).unwrap();
        assert_eq!(admitted(&eu, &quota, 40).await, 10);
        eu.store.set_shares(shares(50, 10)).unwrap();
        // The other region may have used the windows of this hour and of the next one.
        pass(3_600_000).await;
        assert_eq!(admitted(&eu, &quota, 40).await, 10);
        pass(3_600_000).await;
        assert_eq!(admitted(&eu, &quota, 60).await, 50);
    });
}

#[test]
fn wrong_shares_are_errors() {
    let new = |shares: &[(&str, u32)]| RegionShares::new(shares.iter().copied());
    let no_share = new(&[("eu", 0)]).unwrap_err();
    assert_eq!(no_share, RegionSharesError::NoShare("eu".into()));
    let two_shares = new(&[("eu", 1), ("eu", 2)]).unwrap_err();
    assert_eq!(two_shares, RegionSharesError::TwoShares("eu".into()));
    let no_pool = new(&[("eu", 60), ("us", 40)]).unwrap_err();
    let (local, home) = (MemoryStore::new(), MemoryStore::new());
    let shares = new(&[("eu", 60)]).unwrap();
    let unknown = Regional::new(local, home, "us", shares).unwrap_err();
    for (error, text) in [
        (
            no_share,
            "region \"eu\" has 0 %: give at least 1 %, or leave the region out",
        ),
        (two_shares, "region \"eu\" has two shares: keep one"),
        (
            no_pool,
            "the shares of all regions are 100 % together: give at most 99 %, the rest is the pool",
        ),
        (
            unknown,
            "region \"us\" has no share, only [\"eu\"] have one",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
