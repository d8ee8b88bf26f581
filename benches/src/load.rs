//! Many tasks that decide one request after another for a given time, and the meters of the servers meanwhile.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::report::Cell;
use crate::traffic::Draws;
use crate::turns::{now, rest};
use tower_quota_dev::RedisServer;

/// The time of one decision in so many is measured, at random: latencies take an eighth of the memory.
const TIMED_EVERY: u64 = 8;

/// The figures of one round of load.
#[derive(Clone, Copy, Default)]
pub(crate) struct Burst {
    /// Decisions per second of wall time.
    pub(crate) rate: f64,
    /// Microseconds of this process' CPU per decision.
    pub(crate) client_cpu: f64,
    /// Microseconds of the servers' CPU per decision.
    pub(crate) server_cpu: f64,
    /// Microseconds that a decision took, median.
    pub(crate) p50: f64,
    /// Microseconds that a decision took, 99th percentile.
    pub(crate) p99: f64,
    /// Decisions of a script call.
    pub(crate) of_call: f64,
    /// Bytes that the servers received per decision.
    pub(crate) bytes_in: f64,
    /// Bytes that the servers sent per decision.
    pub(crate) bytes_out: f64,
}

/// Returns the lowest of a figure.
pub(crate) fn lowest(bursts: &[Burst], figure: fn(&Burst) -> f64) -> Option<Cell> {
    Cell::lowest(&bursts.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the highest of a figure.
pub(crate) fn highest(bursts: &[Burst], figure: fn(&Burst) -> f64) -> Option<Cell> {
    Cell::highest(&bursts.iter().map(figure).collect::<Vec<_>>())
}

/// Decides in `tasks` tasks, on one random number after another, until `span` has passed.
pub(crate) async fn run<F: Future<Output = ()> + Send>(
    servers: &[&RedisServer],
    tasks: u64,
    span: Duration,
    decide: &Arc<impl Fn(u64) -> F + Send + Sync + 'static>,
) -> Burst {
    let stop = Arc::new(AtomicBool::new(false));
    let before = Meters::read(servers);
    let began = now();
    let workers: Vec<_> = (0..tasks)
        .map(|task| {
            let (decide, stop) = (Arc::clone(decide), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut draws = Draws::new(task + 1);
                let mut latencies = Vec::with_capacity(1 << 16);
                let mut decisions = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let draw = draws.next();
                    let asked = (draw < u64::MAX / TIMED_EVERY).then(now);
                    decide(draw).await;
                    decisions += 1;
                    if let Some(asked) = asked {
                        latencies.push((now() - asked).as_secs_f64() * 1e6);
                    }
                }
                (decisions, latencies)
            })
        })
        .collect();
    rest(span).await;
    stop.store(true, Ordering::Relaxed);
    let (mut decisions, mut latencies) = (0, Vec::new());
    for worker in workers {
        let (made, timed) = worker.await.unwrap_or_default();
        decisions += made;
        latencies.extend(timed);
    }
    let elapsed = now() - began;
    let after = Meters::read(servers);

    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize);
    let decisions = decisions.max(1) as f64;
    let used = |meter: fn(&Meters) -> f64| (meter(&after) - meter(&before)) / decisions;
    Burst {
        rate: decisions / elapsed.as_secs_f64(),
        client_cpu: used(|meters| meters.client_cpu) * 1e6,
        server_cpu: used(|meters| meters.server_cpu) * 1e6,
        p50: at(0.5).copied().unwrap_or_default(),
        p99: at(0.99).copied().unwrap_or_default(),
        of_call: 1.0 / used(|meters| meters.calls),
        bytes_in: used(|meters| meters.bytes_in),
        bytes_out: used(|meters| meters.bytes_out),
    }
}

/// Sums since the processes began, over all servers.
#[derive(Default)]
pub(crate) struct Meters {
    /// Seconds.
    client_cpu: f64,
    /// Seconds.
    pub(crate) server_cpu: f64,
    /// Calls of scripts.
    pub(crate) calls: f64,
    bytes_in: f64,
    bytes_out: f64,
}

impl Meters {
    pub(crate) fn read(servers: &[&RedisServer]) -> Self {
        let mut sums = Self {
            client_cpu: client_cpu(),
            ..Self::default()
        };
        for server in servers {
            let info = Info::of(server);
            sums.server_cpu += info.number("used_cpu_sys:") + info.number("used_cpu_user:");
            sums.calls += info.number("cmdstat_evalsha:calls=");
            sums.bytes_in += info.number("total_net_input_bytes:");
            sums.bytes_out += info.number("total_net_output_bytes:");
        }
        sums
    }
}

/// Returns the seconds of CPU that this process has used, from `/proc/self/stat` (in ticks of 10 ms).
fn client_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name is in parentheses and may hold spaces: count the fields after it. utime and stime.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// The answer of a server to `INFO`.
pub(crate) struct Info(String);

impl Info {
    pub(crate) fn of(server: &RedisServer) -> Self {
        Self(server.command("INFO all").unwrap_or_default())
    }

    /// Returns the number after this text at the beginning of a line, or 0.
    pub(crate) fn number(&self, prefix: &str) -> f64 {
        let field = self.0.lines().find_map(|line| line.strip_prefix(prefix));
        let number = field.and_then(|field| field.split(',').next());
        number
            .and_then(|number| number.trim().parse().ok())
            .unwrap_or_default()
    }
}
