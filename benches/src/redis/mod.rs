//! `RedisStore` beside what one writes without it, on one Redis of its own over loopback.

mod contenders;
#[cfg(feature = "limitador")]
mod limitador;

use std::error::Error;
use std::time::Duration;

use self::contenders::{Field, Shape, multiplexed, ping, pooled, tower_quota};
use crate::load::{self, Round, info};
use crate::report::{Report, median, median_ratio};

/// Distinct keys, chosen uniformly.
const KEYS: u64 = 1_000_000;

const TOWER_QUOTA: &str = "tower-quota";
const PAIRED: &str = "tower-quota, 2 connections";
const PARTED: &str = "tower-quota, 64 partitions";
const MULTIPLEXED: &str = "redis-rs, a script per limit";
const POOLED: &str = "deadpool, a script per limit";
const PING: &str = "redis-rs, PING";
#[cfg(feature = "limitador")]
const LIMITADOR: &str = "limitador";

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(quick))
}

async fn measure(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (rounds, span) = if quick { (3, Duration::from_millis(500)) } else { (7, Duration::from_secs(3)) };
    let mut report = Report::default();
    let field = Field::prepare().await?;
    let bench = Bench { field, rounds, span };

    for (shape, case) in [
        (Shape::One, "redis/1-limit"),
        (Shape::Three, "redis/3-limits"),
        (Shape::ThreeOnTwo, "redis/3-limits-2-subjects"),
    ] {
        let contenders = [
            (TOWER_QUOTA, shape),
            (MULTIPLEXED, shape),
            (POOLED, shape),
            (PING, shape),
            #[cfg(feature = "limitador")]
            (LIMITADOR, shape),
        ];
        let rounds = bench.rounds(512, &contenders).await;
        for (contender, figures) in &rounds {
            report.row(case, contender, figures_of(figures));
        }
        let (ours, theirs) = (&rounds[0].1, &rounds[1].1);
        report.ratio(case, ratio(ours, theirs, |round| round.rate));
        if shape == Shape::Three {
            report.ratio("redis/3-limits-pooled", ratio(ours, &rounds[2].1, |round| round.rate));
            #[cfg(feature = "limitador")]
            report.ratio("redis/3-limits-limitador", ratio(ours, &rounds[4].1, |round| round.rate));
            report.ratio("redis/3-limits-server-cpu", ratio(theirs, ours, |round| round.server_cpu));
            report.ratio("redis/3-limits-client-cpu", ratio(theirs, ours, |round| round.client_cpu));
        }
    }

    // What tower-quota's own options make of it.
    let rounds =
        bench.rounds(512, &[(TOWER_QUOTA, Shape::Three), (PAIRED, Shape::Three), (PARTED, Shape::Three)]).await;
    for (contender, figures) in &rounds {
        report.row("redis/options", contender, figures_of(figures));
    }

    // tower-quota with three limits against the peer with one.
    for (tasks, case) in [(64, "64"), (1, "1")] {
        let ours = if tasks == 1 { Shape::One } else { Shape::Three };
        let rounds = bench.rounds(tasks, &[(TOWER_QUOTA, ours), (MULTIPLEXED, Shape::One)]).await;
        for (contender, figures) in &rounds {
            report.row(&format!("redis/latency-{case}"), contender, figures_of(figures));
        }
        report.ratio(format!("redis/p50-{case}"), ratio(&rounds[1].1, &rounds[0].1, |round| round.p50));
        report.ratio(format!("redis/p99-{case}"), ratio(&rounds[1].1, &rounds[0].1, |round| round.p99));
    }

    let subjects = if quick { KEYS / 4 } else { KEYS };
    let ours = bench.bytes(TOWER_QUOTA, Shape::Slow, subjects).await?;
    let slowest = bench.bytes(TOWER_QUOTA, Shape::Slowest, subjects).await?;
    let theirs = bench.bytes(MULTIPLEXED, Shape::Slow, subjects).await?;
    report.row("redis/bytes-per-subject", "tower-quota, 3 limits, whole within a minute", vec![("bytes", ours)]);
    report.row("redis/bytes-per-subject", "tower-quota, 3 limits, one takes longer", vec![("bytes", slowest)]);
    report.row("redis/bytes-per-subject", "redis-rs, 1 limit", vec![("bytes", theirs)]);
    report.ratio("redis/bytes-per-subject", theirs / ours);
    report.ratio("redis/bytes-per-lasting-subject", theirs / slowest);
    Ok(report)
}

struct Bench {
    field: Field,
    rounds: usize,
    span: Duration,
}

impl Bench {
    /// Each contender's rounds, interleaved. A round that is not counted comes first.
    async fn rounds(&self, tasks: u64, contenders: &[(&'static str, Shape)]) -> Vec<(&'static str, Vec<Round>)> {
        let mut all: Vec<_> = contenders.iter().map(|&(contender, _)| (contender, Vec::new())).collect();
        for round in 0..=self.rounds {
            for (position, &(contender, shape)) in contenders.iter().enumerate() {
                let figures = self.round(contender, shape, tasks).await;
                if round > 0 {
                    all[position].1.push(figures);
                }
            }
        }
        all
    }

    async fn round(&self, contender: &str, shape: Shape, tasks: u64) -> Round {
        let Field { server, connection, pool, sha, .. } = &self.field;
        #[cfg(feature = "limitador")]
        if contender == LIMITADOR {
            let (limiter, limits) = (std::sync::Arc::clone(&self.field.limitador), shape.limits());
            let decide = move |key| limitador::decide(std::sync::Arc::clone(&limiter), limits, key);
            return load::run(server, tasks, KEYS, self.span, decide).await;
        }
        let store = match contender {
            PAIRED => &self.field.paired,
            PARTED => &self.field.parted,
            _ => &self.field.store,
        };
        let (store, connection, pool, sha) = (store.clone(), connection.clone(), pool.clone(), sha.clone());
        match contender {
            TOWER_QUOTA | PAIRED | PARTED => {
                load::run(server, tasks, KEYS, self.span, move |key| tower_quota(store.clone(), shape, key)).await
            }
            MULTIPLEXED => {
                let decide = move |key| multiplexed(connection.clone(), sha.clone(), shape, key);
                load::run(server, tasks, KEYS, self.span, decide).await
            }
            POOLED => {
                let decide = move |key| pooled(pool.clone(), sha.clone(), shape, key);
                load::run(server, tasks, KEYS, self.span, decide).await
            }
            _ => load::run(server, tasks, KEYS, self.span, move |_| ping(connection.clone())).await,
        }
    }

    /// Bytes of Redis' memory per subject, every subject counted once.
    async fn bytes(&self, contender: &str, shape: Shape, subjects: u64) -> Result<f64, Box<dyn Error>> {
        let Field { server, store, connection, sha, .. } = &self.field;
        server.command("FLUSHALL")?;
        let before = info(server, "memory", "used_memory:");
        let workers: Vec<_> = (0..64)
            .map(|worker| {
                let (store, connection, sha) = (store.clone(), connection.clone(), sha.clone());
                let ours = contender == TOWER_QUOTA;
                tokio::spawn(async move {
                    for key in (worker..subjects).step_by(64) {
                        if ours {
                            tower_quota(store.clone(), shape, key).await;
                        } else {
                            multiplexed(connection.clone(), sha.clone(), shape, key).await;
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await?;
        }
        let used = info(server, "memory", "used_memory:") - before;
        Ok(used / subjects as f64)
    }
}

fn figures_of(rounds: &[Round]) -> Vec<(&'static str, f64)> {
    let middle = |figure: fn(&Round) -> f64| median(&mut rounds.iter().map(figure).collect::<Vec<_>>());
    vec![
        ("decisions/s", middle(|round| round.rate)),
        ("p50 us", middle(|round| round.p50)),
        ("p99 us", middle(|round| round.p99)),
        ("client us", middle(|round| round.client_cpu)),
        ("server us", middle(|round| round.server_cpu)),
    ]
}

/// The median over the rounds of one figure's `over / under`.
fn ratio(over: &[Round], under: &[Round], figure: fn(&Round) -> f64) -> f64 {
    let of = |rounds: &[Round]| rounds.iter().map(figure).collect::<Vec<_>>();
    median_ratio(&of(over), &of(under))
}
