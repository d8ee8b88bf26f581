//! `RedisStore` beside code that a service writes without it, on Redis servers over loopback.

mod bytes;
mod contenders;
pub(crate) mod distance;
#[cfg(feature = "limitador")]
mod limitador;
mod overload;
mod setup;
mod shape;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use self::contenders::{ping, pooled, script_per_limit, tower_quota};
use self::setup::Setup;
pub(crate) use self::setup::connect;
use self::shape::Shape;
use crate::load::{self, Round};
use crate::report::{Report, median, median_ratio};

const TOWER_QUOTA: &str = "tower-quota";
const TWO_CONNECTIONS: &str = "tower-quota, 2 connections";
const PARTITIONED: &str = "tower-quota, 64 partitions";
const CLUSTERED: &str = "tower-quota, a cluster of 3";
const MULTIPLEXED: &str = "redis-rs, a script per limit";
const POOLED: &str = "deadpool, a script per limit";
const PING: &str = "redis-rs, PING";
#[cfg(feature = "limitador")]
const LIMITADOR: &str = "limitador";

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    runtime()?.block_on(measure(quick))
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

async fn measure(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (rounds, span) = if quick {
        (3, Duration::from_millis(300))
    } else {
        (5, Duration::from_secs(2))
    };
    let mut bench = Bench {
        setup: Arc::new(Setup::prepare().await?),
        rounds,
        span,
        report: Report::default(),
    };
    bench.straight().await;
    bench.mixes().await;
    bench.options().await;
    bench.latencies().await;
    bench.cluster().await;
    let Bench {
        setup, mut report, ..
    } = bench;
    drop(setup);
    bytes::measure(quick, &mut report).await?;
    overload::measure(quick, &mut report).await?;
    Ok(report)
}

struct Bench {
    setup: Arc<Setup>,
    rounds: usize,
    span: Duration,
    report: Report,
}

impl Bench {
    /// Measures requests that all ask the same limits.
    async fn straight(&mut self) {
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
            let rounds = self.case(case, 512, &contenders).await;
            let (ours, theirs) = (&rounds[0], &rounds[1]);
            self.report
                .ratio(case, ratio(ours, theirs, |round| round.rate));
            if shape == Shape::Three {
                self.report.ratio(
                    "redis/3-limits-pooled",
                    ratio(ours, &rounds[2], |round| round.rate),
                );
                #[cfg(feature = "limitador")]
                self.report.ratio(
                    "redis/3-limits-limitador",
                    ratio(ours, &rounds[4], |round| round.rate),
                );
                self.report.ratio(
                    "redis/3-limits-server-cpu",
                    ratio(theirs, ours, |round| round.server_cpu),
                );
                self.report.ratio(
                    "redis/3-limits-client-cpu",
                    ratio(theirs, ours, |round| round.client_cpu),
                );
            }
        }
    }

    /// Measures clients that return, and requests with different limits.
    async fn mixes(&mut self) {
        for (shape, case) in [
            (Shape::Lasting, "redis/3-limits-lasting"),
            (Shape::Mixed, "redis/mixed"),
            (Shape::OneQuotaInTurn, "redis/one-quota-in-turn"),
            (Shape::QuotasInTurn, "redis/quotas-in-turn"),
        ] {
            let rounds = self
                .case(case, 512, &[(TOWER_QUOTA, shape), (MULTIPLEXED, shape)])
                .await;
            self.report
                .ratio(case, ratio(&rounds[0], &rounds[1], |round| round.rate));
            self.report.ratio(
                format!("{case}-server-cpu"),
                ratio(&rounds[1], &rounds[0], |round| round.server_cpu),
            );
        }
    }

    /// Measures tower-quota with various options.
    async fn options(&mut self) {
        let contenders =
            [TOWER_QUOTA, TWO_CONNECTIONS, PARTITIONED].map(|contender| (contender, Shape::Three));
        self.case("redis/options", 512, &contenders).await;
    }

    /// Measures tower-quota with three limits against the peer with one, and one task with one limit each.
    async fn latencies(&mut self) {
        for (tasks, ours) in [(64, Shape::Three), (1, Shape::One)] {
            let case = format!("redis/latency-{tasks}");
            let rounds = self
                .case(
                    &case,
                    tasks,
                    &[(TOWER_QUOTA, ours), (MULTIPLEXED, Shape::One)],
                )
                .await;
            self.report.ratio(
                format!("redis/p50-{tasks}"),
                ratio(&rounds[1], &rounds[0], |round| round.p50),
            );
            self.report.ratio(
                format!("redis/p99-{tasks}"),
                ratio(&rounds[1], &rounds[0], |round| round.p99),
            );
        }
    }

    /// Compares the decisions per second of the primaries' CPU, against those of a server alone.
    async fn cluster(&mut self) {
        let contenders = [(CLUSTERED, Shape::Three), (TOWER_QUOTA, Shape::Three)];
        let rounds = self.case("redis/cluster-3", 512, &contenders).await;
        self.report.ratio(
            "redis/cluster-3",
            ratio(&rounds[1], &rounds[0], |round| round.server_cpu),
        );
    }

    /// Reports each contender's interleaved rounds and returns them. A round that is not counted comes first.
    async fn case(
        &mut self,
        case: &str,
        tasks: u64,
        contenders: &[(&'static str, Shape)],
    ) -> Vec<Vec<Round>> {
        let mut all = vec![Vec::new(); contenders.len()];
        for round in 0..=self.rounds {
            for (position, &(contender, shape)) in contenders.iter().enumerate() {
                let figures = self.round(contender, shape, tasks).await;
                if round > 0 {
                    all[position].push(figures);
                }
            }
        }
        for ((contender, _), rounds) in contenders.iter().zip(&all) {
            self.report.row(case, contender, figures_of(rounds));
        }
        all
    }

    async fn round(&self, contender: &'static str, shape: Shape, tasks: u64) -> Round {
        let setup = Arc::clone(&self.setup);
        let decide = move |draw| {
            let setup = Arc::clone(&setup);
            async move {
                let is_answered = match contender {
                    TOWER_QUOTA => tower_quota(&setup.store, shape, draw).await,
                    TWO_CONNECTIONS => tower_quota(&setup.paired, shape, draw).await,
                    PARTITIONED => tower_quota(&setup.parted, shape, draw).await,
                    CLUSTERED => tower_quota(&setup.clustered, shape, draw).await,
                    MULTIPLEXED => {
                        script_per_limit(&mut setup.connection.clone(), &setup.sha, shape, draw)
                            .await
                    }
                    POOLED => pooled(&setup.pool, &setup.sha, shape, draw).await,
                    #[cfg(feature = "limitador")]
                    LIMITADOR => limitador::decide(&setup.limitador, shape, draw).await,
                    _ => ping(&mut setup.connection.clone()).await,
                };
                if !is_answered {
                    eprintln!("{contender}: no answer");
                }
            }
        };
        let servers = if contender == CLUSTERED {
            &self.setup.primaries()[..]
        } else {
            &[&self.setup.server]
        };
        load::run(servers, tasks, self.span, &Arc::new(decide)).await
    }
}

fn figures_of(rounds: &[Round]) -> Vec<(&'static str, f64)> {
    let middle =
        |figure: fn(&Round) -> f64| median(&mut rounds.iter().map(figure).collect::<Vec<_>>());
    vec![
        ("decisions/s", middle(|round| round.rate)),
        ("p50 us", middle(|round| round.p50)),
        ("p99 us", middle(|round| round.p99)),
        ("client us", middle(|round| round.client_cpu)),
        ("server us", middle(|round| round.server_cpu)),
        ("script us", middle(|round| round.script)),
        ("call ms", middle(|round| round.call / 1_000.0)),
        ("slow", rounds.iter().map(|round| round.slow).sum()),
    ]
}

/// Returns the median over the rounds of one figure's `over / under`.
fn ratio(over: &[Round], under: &[Round], figure: fn(&Round) -> f64) -> f64 {
    let of = |rounds: &[Round]| rounds.iter().map(figure).collect::<Vec<_>>();
    median_ratio(&of(over), &of(under))
}
