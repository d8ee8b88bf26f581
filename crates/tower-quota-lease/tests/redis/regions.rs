//! Measures regions with real servers, far from their home store.
//!
//! This prints the table of the guide on regions, in seven minutes:
//!
//! ```text
//! cargo test -p tower-quota-lease --test redis -- --ignored --nocapture regions
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::float_arithmetic,
    reason = "real servers are asked in real time, and a table shows shares"
)]

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::task::JoinSet;
use tower_quota_core::{Charge, Decision, Key, Name, Quota, Store, Timestamp};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_lease::{LeaseOptions, Leased, RegionShares, Regional};
use tower_quota_redis::RedisStore;

use crate::PATIENCE;

const NAMES: [&str; 3] = ["eu", "us", "asia"];
const QUOTA: Quota = Quota::per_minute(6_000).burst(1_500);
/// The requests of each region every 10 ms, which together exceed the quota.
const DEMAND: usize = 2;
const LEASE: Duration = Duration::from_secs(2);

const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    int outcome = syscall(SYS_clock_gettime, clock, at);
    if (clock == CLOCK_REALTIME) at->tv_sec += atol(getenv("SECONDS_AHEAD"));
    return outcome;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec precise;
    int outcome = clock_gettime(CLOCK_REALTIME, &precise);
    at->tv_sec = precise.tv_sec;
    at->tv_usec = precise.tv_nsec / 1000;
    return outcome;
}
"#;

/// A store with a clock that is ahead.
struct AheadServer {
    process: Child,
    port: u16,
    _home: TempDir,
}

impl AheadServer {
    fn start(seconds: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (source, library) = (home.path().join("clock.c"), home.path().join("clock.so"));
        fs::write(&source, CLOCK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        let compiled = compiler.arg(&library).arg(&source).status().unwrap();
        assert!(compiled.success());
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--dir"])
            .arg(home.path())
            .env("LD_PRELOAD", &library)
            .env("SECONDS_AHEAD", seconds.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            port,
            _home: home,
        }
    }
}

impl Drop for AheadServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A request that was admitted at an unknown instant between two known instants.
#[derive(Clone, Copy)]
struct Admitted {
    sent: Instant,
    received: Instant,
    units: u64,
    region: usize,
    by_pool: bool,
}

/// Finds an interval with more units than the quota allows.
fn first_over(admitted: &[Admitted]) -> Option<(Duration, u64)> {
    let mut by_end = admitted.to_vec();
    by_end.sort_by_key(|request| request.received);
    for first in admitted {
        let mut units = 0;
        for request in &by_end {
            if request.sent < first.sent {
                continue;
            }
            units += request.units;
            let span = request.received - first.sent;
            // Round up to a unit.
            let refilled = span.as_micros() * u128::from(QUOTA.units()) / 60_000_000 + 1;
            if u128::from(units) > u128::from(QUOTA.capacity()) + refilled {
                return Some((span, units));
            }
        }
    }
    None
}

type Redis = Leased<RedisStore>;

struct World {
    home: RedisServer,
    proxies: Vec<FaultProxy>,
    stores: Vec<Regional<Redis, Redis>>,
    admitted: Vec<Admitted>,
    _locals: Vec<AheadServer>,
}

impl World {
    async fn start(regions: usize, distance: Duration, longest_lease: Duration) -> Self {
        let home = RedisServer::start();
        let locals: Vec<AheadServer> = (0..regions).map(AheadServer::start).collect();
        let proxies: Vec<FaultProxy> = locals.iter().map(|_| FaultProxy::to(home.port())).collect();
        let shares = NAMES[..regions]
            .iter()
            .map(|name| (*name, 60 / u32::try_from(regions).unwrap()));
        let shares = RegionShares::new(shares).unwrap();
        let mut stores = Vec::new();
        for (number, name) in NAMES[..regions].iter().enumerate() {
            proxies[number].inflict(Fault::Delay(distance));
            let local = RedisStore::options().deadline(PATIENCE);
            // The server may still start.
            let local = local.connect_lazily();
            let url = format!("redis://127.0.0.1:{}/", locals[number].port);
            let local = local.connect(&url).await.unwrap();
            let home = RedisStore::options().deadline(4 * distance).prefix("pool");
            let home = home.connect(&proxies[number].url()).await.unwrap();
            let options = LeaseOptions::default().longest(longest_lease);
            let local = Leased::new(local);
            let home = Leased::with_options(home, options);
            stores.push(Regional::new(local, home, name, shares.clone()).unwrap());
        }
        Self {
            home,
            proxies,
            stores,
            admitted: Vec::new(),
            _locals: locals,
        }
    }

    /// Sends requests from all regions. Returns the admitted units of each region.
    async fn load(&mut self, span: Duration) -> Vec<u64> {
        let started = Instant::now();
        let mut requests = JoinSet::new();
        while started.elapsed() < span {
            for (region, store) in self.stores.iter().enumerate() {
                for _ in 0..DEMAND {
                    requests.spawn(check(store.clone(), 1, region));
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut units = vec![0; self.stores.len()];
        for request in requests.join_all().await.into_iter().flatten() {
            units[request.region] += request.units;
            self.admitted.push(request);
        }
        units
    }

    /// Returns the median and the 99th percentile of the admitted requests.
    fn latencies(&self, by_pool: bool) -> String {
        let requests = self
            .admitted
            .iter()
            .filter(|request| request.by_pool == by_pool);
        let mut latencies: Vec<Duration> = requests
            .map(|request| request.received - request.sent)
            .collect();
        latencies.sort_unstable();
        if latencies.is_empty() {
            return "-".to_owned();
        }
        let at =
            |percent: usize| latencies[(latencies.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        format!("{:.2}, {:.1} ms", at(50), at(99))
    }

    /// Spends the burst.
    async fn drain(&mut self) {
        for region in 0..self.stores.len() {
            while let Some(request) = check(self.stores[region].clone(), 20, region).await {
                self.admitted.push(request);
            }
        }
    }
}

async fn check(store: Regional<Redis, Redis>, units: u64, region: usize) -> Option<Admitted> {
    let key = Key::number(Name::new("client"), 1);
    let charges = [Charge::new("limit", &QUOTA, &key).cost(units)];
    let sent = Instant::now();
    let mut decision = Decision::default();
    if !store.check_at_once(&charges, &mut decision) {
        decision = store.check(&charges).await.ok()?;
    }
    decision.is_allowed().then(|| Admitted {
        sent,
        received: Instant::now(),
        units,
        region,
        by_pool: decision.at() > Timestamp::from_micros(1 << 62),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_never_exceed_quota_on_redis() {
    let mut world = World::start(2, Duration::from_millis(40), LEASE).await;
    let span = Duration::from_secs(2);
    world.drain().await;
    let _ = world.load(span).await;
    world.proxies[0].inflict(Fault::Stall);
    // The floor is 30 % of the quota. Leases may hold some of the units at the end.
    let floor = QUOTA.units() * 30 / 100 * span.as_secs() / 60;
    let least = floor * 4 / 5;
    let cut_off = world.load(span).await;
    assert!(cut_off[0] >= least, "{cut_off:?} of {floor}");
    world.home.kill();
    let without_home = world.load(span).await;
    let is_served = without_home.iter().all(|units| *units >= least);
    assert!(is_served, "{without_home:?} of {floor}");
    assert_eq!(first_over(&world.admitted), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes seven minutes and prints a table"]
async fn regions_cut_off_for_a_minute() {
    println!(
        "| regions | distance | leases | phase | units a second in each region | admitted of allowed | floor p50, p99 | pool p50, p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (regions, millis, lease) in [
        (2, 40, LEASE),
        (2, 40, Duration::ZERO),
        (2, 150, LEASE),
        (2, 150, Duration::ZERO),
        (3, 40, LEASE),
        (3, 150, LEASE),
    ] {
        let mut world = World::start(regions, Duration::from_millis(millis), lease).await;
        world.drain().await;
        let leases = if lease.is_zero() { "no" } else { "yes" };
        for (phase, seconds) in [("steady", 10), ("one cut off", 60), ("home killed", 10)] {
            match phase {
                "one cut off" => world.proxies[0].inflict(Fault::Stall),
                "home killed" => world.home.kill(),
                _ => {}
            }
            // The first seconds still have units of the burst.
            let _ = world.load(Duration::from_secs(3)).await;
            world.admitted.clear();
            let started = Instant::now();
            let units = world.load(Duration::from_secs(seconds)).await;
            let span = started.elapsed().as_secs_f64();
            assert_eq!(first_over(&world.admitted), None);
            let rates: Vec<String> = units
                .iter()
                .map(|units| format!("{:.1}", *units as f64 / span))
                .collect();
            let admitted: u64 = units.iter().sum();
            let allowed = span * QUOTA.units() as f64 / 60.0;
            println!(
                "| {regions} | {millis} ms | {leases} | {phase} | {} | {admitted} of {allowed:.0} | {} | {} |",
                rates.join(", "),
                world.latencies(false),
                world.latencies(true),
            );
        }
    }
}
