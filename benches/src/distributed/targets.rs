//! Cases with targets: as many decisions as one process can make, with 512 requests outstanding.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use tower_quota_core::{MemoryStore, Quota, RefusalCache};
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;
use tower_quota_testkit::RedisServer;

use super::latencies::Latencies;
use super::path::{Answer, Contender, Path, StorePath, Trypema};
use super::plan::quota;
use crate::load::{self, Deciding, Meters, Round};
use crate::report::{Report, median, median_ratio};
use crate::timing::now;
use crate::traffic::Traffic;

const OUTSTANDING: u64 = 512;
/// Units a second of the hot client: fewer than a process asks for.
const HOT: u32 = 100_000;
/// The time between two decisions of the steady case: half of the hot client's rate.
const EVERY: Duration = Duration::from_micros(20);
/// The quota of each of a million clients, with the burst that a quota has by default.
const EACH: Quota = Quota::per_minute(60 * RATE_OF_EACH as u64);
const RATE_OF_EACH: u32 = 1_000;
const MILLION: u32 = 1_000_000;
/// Units a second of a client that sends a flood of requests.
const FLOODED: u32 = 10;
/// The quotas of a client that sends a flood of requests at a steady pace, and their names.
const PACED: [(&str, Quota); 5] = [
    ("1-a-second", quota(1)),
    ("10-a-second", quota(FLOODED)),
    (
        "fixed-window",
        Quota::per_second(FLOODED as u64).fixed_window(),
    ),
    (
        "sliding-window",
        Quota::per_second(FLOODED as u64).sliding_window(),
    ),
    (
        "sliding-log",
        Quota::per_second(FLOODED as u64).sliding_log(),
    ),
];
/// The time between two requests of a flood of 100,000 a second.
const PACE: Duration = Duration::from_micros(10);

/// The rounds of one contender in one case.
#[derive(Default)]
struct Rounds {
    rounds: Vec<Round>,
    /// Decisions in all rounds, with the one that does not count.
    decisions: f64,
    /// True if a round admitted more than one client's quota.
    is_over: bool,
    failed: u64,
}

/// A path with counts of its answers in a round.
struct Counted<P, C> {
    path: P,
    /// Returns the client of a uniform number.
    client: C,
    admitted: AtomicU64,
    failed: AtomicU64,
}

/// The server, and the length and number of rounds.
pub(super) struct Targets {
    server: RedisServer,
    rounds: u32,
    span: Duration,
}

impl Targets {
    pub(super) fn new(quick: bool) -> Self {
        let (rounds, millis) = if quick { (2, 500) } else { (5, 2_000) };
        Self {
            server: RedisServer::start(),
            rounds,
            span: Duration::from_millis(millis),
        }
    }

    pub(super) fn measure(&self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            self.hot(report).await?;
            self.zipf(report).await?;
            self.steady(report).await?;
            self.refusal_flood(report).await?;
            for (name, quota) in PACED {
                self.paced_flood(name, quota, report).await?;
            }
            Ok(())
        })
    }

    /// Measures one client, for which a process asks as often as it can.
    async fn hot(&self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        const CASE: &str = "distributed/hot/512";
        let exact = StorePath::new(self.store().await?, quota(HOT));
        let trypema = Trypema::connect(&self.server.url(), self.rounds + 1, HOT).await?;
        let leased = StorePath::new(Leased::new(self.store().await?), quota(HOT));
        let [mut of_exact, mut of_leased, mut of_trypema] = Default::default();
        for round in 0..=self.rounds {
            // A client of its own for each round: its bucket is full.
            self.round(
                &exact,
                &mut of_exact,
                round,
                HOT,
                Contender::Exact,
                move |_| round,
            )
            .await;
            self.round(
                &leased,
                &mut of_leased,
                round,
                HOT,
                Contender::Leased,
                move |_| round,
            )
            .await;
            self.round(
                &trypema,
                &mut of_trypema,
                round,
                HOT,
                Contender::Trypema,
                move |_| round,
            )
            .await;
        }
        of_exact.report(report, CASE, Contender::Exact.name());
        of_leased.report(report, CASE, Contender::Leased.name());
        of_trypema.report(report, CASE, Contender::Trypema.name());
        let rate = |round: &Round| round.rate;
        report.ratio(CASE, of_leased.over_other(&of_exact, rate));
        report.ratio(
            format!("{CASE}/vs-trypema"),
            of_leased.over_other(&of_trypema, rate),
        );
        report.ratio(
            format!("{CASE}/within-quota"),
            if of_leased.is_over { 0.0 } else { 1.0 },
        );
        Ok(())
    }

    /// Measures a million clients, most of which ask once.
    async fn zipf(&self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        const CASE: &str = "distributed/zipf-1m";
        let trace = Arc::new(Traffic::Zipf(MILLION).trace(1));
        let (store_of_exact, store_of_leased) = (self.store().await?, self.store().await?);
        let exact = StorePath::new(store_of_exact.clone(), EACH);
        let leased = StorePath::new(Leased::new(store_of_leased.clone()), EACH);
        let [mut of_exact, mut of_leased] = Default::default();
        for round in 0..=self.rounds {
            let clients = Arc::clone(&trace);
            self.round(
                &exact,
                &mut of_exact,
                round,
                RATE_OF_EACH,
                Contender::Exact,
                move |draw| clients.at(draw),
            )
            .await;
            let clients = Arc::clone(&trace);
            self.round(
                &leased,
                &mut of_leased,
                round,
                RATE_OF_EACH,
                Contender::Leased,
                move |draw| clients.at(draw),
            )
            .await;
        }
        of_exact.report(report, CASE, Contender::Exact.name());
        of_leased.report(report, CASE, Contender::Leased.name());
        report.ratio(CASE, of_leased.over_other(&of_exact, |round| round.rate));
        report.ratio(
            format!("{CASE}/calls"),
            of_exact.over_other(&of_leased, |round| round.calls),
        );
        // Calls are batches, and as many as fit into the time: what they carry is the work that leases save.
        let sent =
            |rounds: &Rounds, store: &RedisStore| store.stats().decisions as f64 / rounds.decisions;
        report.ratio(
            format!("{CASE}/sent"),
            sent(&of_exact, &store_of_exact) / sent(&of_leased, &store_of_leased),
        );
        Ok(())
    }

    /// Measures one client far beyond its quota: nearly all of its requests are refused.
    async fn refusal_flood(&self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        const CASE: &str = "distributed/refusal-flood";
        let quota = quota(FLOODED);
        let exact = StorePath::new(self.store().await?, quota);
        let leased = StorePath::new(Leased::new(self.store().await?), quota);
        let cached = StorePath::new(Arc::new(RefusalCache::new(self.store().await?)), quota);
        let [mut of_exact, mut of_leased, mut of_cached] = Default::default();
        for round in 0..=self.rounds {
            self.round(
                &exact,
                &mut of_exact,
                round,
                FLOODED,
                Contender::Exact,
                move |_| round,
            )
            .await;
            self.round(
                &leased,
                &mut of_leased,
                round,
                FLOODED,
                Contender::Leased,
                move |_| round,
            )
            .await;
            self.round(
                &cached,
                &mut of_cached,
                round,
                FLOODED,
                Contender::Exact,
                move |_| round,
            )
            .await;
        }
        of_exact.report(report, CASE, Contender::Exact.name());
        of_leased.report(report, CASE, Contender::Leased.name());
        of_cached.report(report, CASE, "tower-quota, refusal cache");
        report.ratio(CASE, of_cached.over_other(&of_exact, |round| round.rate));
        // Microseconds per decision times decisions per second: a hundredth of a processor is 10,000.
        let redis_cpu = median(&mut of_cached.all(|round| round.server_cpu * round.rate));
        report.ratio(format!("{CASE}/redis-cpu"), 10_000.0 / redis_cpu);
        Ok(())
    }

    /// Measures 100,000 requests a second of one client with this quota, behind a refusal cache.
    ///
    /// Requests do not wait for the answers of earlier ones.
    async fn paced_flood(
        &self,
        name: &str,
        quota: Quota,
        report: &mut Report,
    ) -> Result<(), Box<dyn Error>> {
        let case = format!("distributed/refusal-flood-100k/{name}");
        let cached = StorePath::new(Arc::new(RefusalCache::new(self.store().await?)), quota);
        let [mut rates, mut calls, mut cpu] = <[Vec<f64>; 3]>::default();
        for round in 0..=self.rounds {
            let (before, began) = (Meters::read(&[&self.server]), now());
            let mut sent = 0;
            while now() < began + self.span {
                while now() < began + PACE * sent {
                    std::hint::spin_loop();
                }
                let mut decided = Box::pin(cached.decide(round));
                if decided
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
                {
                    tokio::spawn(decided);
                }
                sent += 1;
            }
            let (after, seconds) = (Meters::read(&[&self.server]), (now() - began).as_secs_f64());
            if round > 0 {
                rates.push(f64::from(sent) / seconds);
                calls.push((after.calls - before.calls) / seconds);
                cpu.push((after.server_cpu - before.server_cpu) * 100.0 / seconds);
            }
        }
        let [rate, calls, cpu] = [rates, calls, cpu].map(|mut rounds| median(&mut rounds));
        let figures = vec![
            ("decisions/s", rate),
            ("calls/s", calls),
            ("redis cpu %", cpu),
        ];
        report.row(&case, "tower-quota, refusal cache", figures);
        report.ratio(format!("{case}/calls"), 20.0 / calls);
        report.ratio(format!("{case}/redis-cpu"), 1.0 / cpu);
        Ok(())
    }

    /// Measures one client that asks at a steady rate, from leases and from the memory store.
    ///
    /// The process spins between the decisions, so that a timer's delay is not measured with them.
    async fn steady(&self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        const CASE: &str = "distributed/leased-p99";
        let leased = StorePath::new(Leased::new(self.store().await?), quota(HOT));
        let memory = StorePath::new(MemoryStore::new(), quota(HOT));
        let [mut of_leased, mut of_memory] = [Vec::new(), Vec::new()];
        for round in 0..=self.rounds {
            for (figures, latencies) in [
                (&mut of_leased, self.steadily(&leased, round).await),
                (&mut of_memory, self.steadily(&memory, round).await),
            ] {
                if round > 0 {
                    figures.push(latencies);
                }
            }
        }
        let at = |rounds: &[Latencies], share: f64| {
            median(
                &mut rounds
                    .iter()
                    .map(|latencies| latencies.micros_at(share))
                    .collect::<Vec<_>>(),
            )
        };
        for (name, rounds) in [
            (Contender::Leased.name(), &of_leased),
            ("tower-quota, memory", &of_memory),
        ] {
            report.row(
                CASE,
                name,
                Latencies::PERCENTILES
                    .map(|(p, share)| (p, at(rounds, share)))
                    .to_vec(),
            );
        }
        report.ratio(CASE, (at(&of_memory, 0.99) + 1.0) / at(&of_leased, 0.99));
        Ok(())
    }

    async fn steadily(&self, path: &impl Path, client: u32) -> Latencies {
        let mut latencies = Latencies::new();
        let began = now();
        let mut next = began;
        while next < began + self.span {
            while now() < next {
                std::hint::spin_loop();
            }
            let asked = now();
            path.decide(client).await;
            latencies.add(now() - asked);
            next += EVERY;
            tokio::task::coop::consume_budget().await;
        }
        latencies
    }

    async fn store(&self) -> Result<RedisStore, Box<dyn Error>> {
        Ok(RedisStore::options()
            .deadline(Duration::from_secs(2))
            .connect(&self.server.url())
            .await?)
    }

    /// Runs a round; the first does not count.
    async fn round<P: Path>(
        &self,
        path: &P,
        rounds: &mut Rounds,
        round: u32,
        rate: u32,
        contender: Contender,
        client: impl Fn(u64) -> u32 + Send + Sync + 'static,
    ) {
        let counted = Arc::new(Counted {
            path: path.clone(),
            client,
            admitted: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let began = now();
        let figures = load::run(&[&self.server], OUTSTANDING, self.span, &counted).await;
        let took = now() - began;
        let allowed = contender.allowed(rate, took);
        rounds.decisions += figures.rate * took.as_secs_f64();
        rounds.is_over |= counted.admitted.load(Ordering::Relaxed) > allowed;
        rounds.failed += counted.failed.load(Ordering::Relaxed);
        if round > 0 {
            rounds.rounds.push(figures);
        }
    }
}

impl<P: Path, C: Fn(u64) -> u32 + Send + Sync + 'static> Deciding for Counted<P, C> {
    async fn decide(&self, draw: u64) {
        match self.path.decide((self.client)(draw)).await {
            Answer::Admitted => _ = self.admitted.fetch_add(1, Ordering::Relaxed),
            Answer::Refused => {}
            Answer::Failed => _ = self.failed.fetch_add(1, Ordering::Relaxed),
        }
        // An answer from memory lets other tasks run now and then, as a handler does.
        tokio::task::coop::consume_budget().await;
    }
}

impl Rounds {
    fn report(&self, report: &mut Report, case: &str, contender: &str) {
        let middle = |figure| median(&mut self.all(figure));
        let figures = vec![
            ("decisions/s", middle(|round| round.rate)),
            ("p50 us", middle(|round| round.p50)),
            ("p99 us", middle(|round| round.p99)),
            ("calls", middle(|round| round.calls)),
            ("redis us", middle(|round| round.server_cpu)),
            ("failed", self.failed as f64),
        ];
        report.row(case, contender, figures);
    }

    /// Returns the median ratio of one figure to another contender's.
    fn over_other(&self, other: &Self, figure: fn(&Round) -> f64) -> f64 {
        median_ratio(&self.all(figure), &other.all(figure))
    }

    /// Returns one figure of each round.
    fn all(&self, figure: fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }
}
