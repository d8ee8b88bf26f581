//! `RedisStore` next to code that a service writes without it, on Redis servers over loopback.

mod contenders;
mod overload;
pub(crate) mod sizing;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};

pub(crate) use self::contenders::connect;
use self::contenders::{
    CLUSTERED, DEADLINE, GCRA, PARTITIONED, SCRIPT, Setup, Shape, TOWER_QUOTA, TWO_CONNECTIONS,
    script_per_limit, tower_quota,
};
#[cfg(feature = "limitador")]
use self::contenders::{LIMITADOR, ask_limitador};
use crate::load::{self, Round};
use crate::report::{Figure, Report, median_ratio};

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    runtime()?.block_on(measure(quick))
}

/// Measures the latency by the distance of the server, whose replies arrive later.
pub(crate) fn distance(quick: bool) -> Result<Report, Box<dyn Error>> {
    runtime()?.block_on(at_distances(quick))
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
                (SCRIPT, shape),
                #[cfg(feature = "limitador")]
                (LIMITADOR, shape),
            ];
            let rounds = self.case(case, 512, &contenders).await;
            let (ours, theirs) = (&rounds[0], &rounds[1]);
            self.report
                .ratio(case, ratio(ours, theirs, |round| round.rate));
            if shape == Shape::Three {
                #[cfg(feature = "limitador")]
                self.report.ratio(
                    "redis/3-limits-limitador",
                    ratio(ours, &rounds[2], |round| round.rate),
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
            (Shape::QuotasInTurn, "redis/quotas-in-turn"),
        ] {
            let rounds = self
                .case(case, 512, &[(TOWER_QUOTA, shape), (SCRIPT, shape)])
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
                .case(&case, tasks, &[(TOWER_QUOTA, ours), (SCRIPT, Shape::One)])
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
                    SCRIPT => {
                        script_per_limit(&mut setup.connection.clone(), &setup.sha, shape, draw)
                            .await
                    }
                    #[cfg(feature = "limitador")]
                    LIMITADOR => ask_limitador(&setup.limitador, shape, draw).await,
                    _ => false,
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

fn figures_of(rounds: &[Round]) -> Vec<(&'static str, Figure)> {
    let of = |figure| figure_of(rounds, figure);
    vec![
        ("decisions/s", of(|round| round.rate)),
        ("p50 us", of(|round| round.p50)),
        ("p99 us", of(|round| round.p99)),
        ("client us", of(|round| round.client_cpu)),
        ("server us", of(|round| round.server_cpu)),
        ("decisions a call", of(|round| 1.0 / round.calls)),
        ("bytes in", of(|round| round.bytes_in)),
        ("bytes out", of(|round| round.bytes_out)),
    ]
}

fn figure_of(rounds: &[Round], figure: fn(&Round) -> f64) -> Figure {
    Figure::of(&rounds.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the median over the rounds of one figure's `over / under`.
fn ratio(over: &[Round], under: &[Round], figure: fn(&Round) -> f64) -> f64 {
    let of = |rounds: &[Round]| rounds.iter().map(figure).collect::<Vec<_>>();
    median_ratio(&of(over), &of(under))
}

async fn at_distances(quick: bool) -> Result<Report, Box<dyn Error>> {
    const TASKS: u64 = 64;
    let mut report = Report::default();
    let (rounds, span) = if quick {
        (1, Duration::from_secs(1))
    } else {
        (5, Duration::from_secs(2))
    };
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let options = tower_quota_redis::RedisStore::options().deadline(DEADLINE);
    let store = options.connect(&proxy.url()).await?;
    let (connection, sha) = connect(&proxy.url(), DEADLINE, GCRA).await?;
    for millis in [0, 1, 5, 20] {
        proxy.inflict(Fault::Delay(Duration::from_millis(millis)));
        let mut figures = [const { Vec::new() }; 2];
        for _ in 0..rounds {
            let store = store.clone();
            let ours = move |draw| {
                let store = store.clone();
                async move { _ = tower_quota(&store, Shape::One, draw).await }
            };
            figures[0].push(load::run(&[&server], TASKS, span, &Arc::new(ours)).await);
            let (connection, sha) = (connection.clone(), Arc::<str>::from(sha.as_str()));
            let theirs = move |draw| {
                let (mut connection, sha) = (connection.clone(), Arc::clone(&sha));
                async move { _ = script_per_limit(&mut connection, &sha, Shape::One, draw).await }
            };
            figures[1].push(load::run(&[&server], TASKS, span, &Arc::new(theirs)).await);
        }
        for (contender, rounds) in [TOWER_QUOTA, SCRIPT].into_iter().zip(&figures) {
            let of = |figure| figure_of(rounds, figure);
            let figures = [
                ("decisions/s", of(|round| round.rate)),
                ("p50 ms", of(|round| round.p50 / 1_000.0)),
                ("p99 ms", of(|round| round.p99 / 1_000.0)),
                ("decisions a call", of(|round| 1.0 / round.calls)),
            ];
            report.row(&format!("distance/{millis}-ms"), contender, figures);
        }
    }
    Ok(report)
}
