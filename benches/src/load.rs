//! Many tasks that decide one request after another for a given time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_quota_testkit::RedisServer;

use crate::timing::{now, rest};

/// The time of one decision in so many is measured, at random: latencies take an eighth of the memory.
const TIMED_EVERY: u64 = 8;

/// The figures of one round of load.
#[derive(Clone, Copy, Default)]
pub(crate) struct Round {
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
    /// Microseconds that the servers spent in scripts, per decision.
    pub(crate) script: f64,
    /// Microseconds that a script call took the server, on average.
    pub(crate) call: f64,
    /// Script calls per decision.
    pub(crate) calls: f64,
    /// Entries that were added to the slow log.
    pub(crate) slow: f64,
}

/// Uniform numbers, cheaply: a 64-bit xorshift (Marsaglia, 2003) per task.
pub(crate) struct Keys {
    state: u64,
    range: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64, range: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            range,
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % self.range
    }
}

/// Decides in `tasks` tasks, on one uniform number after another, until `span` has passed.
pub(crate) async fn run<F: Future<Output = ()> + Send>(
    servers: &[&RedisServer],
    tasks: u64,
    span: Duration,
    decide: &Arc<impl Fn(u64) -> F + Send + Sync + 'static>,
) -> Round {
    let stop = Arc::new(AtomicBool::new(false));
    let before = Meters::read(servers);
    let began = now();
    let workers: Vec<_> = (0..tasks)
        .map(|task| {
            let (decide, stop) = (Arc::clone(decide), Arc::clone(&stop));
            let mut draws = Keys::new(task + 1, u64::MAX);
            tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(1 << 16);
                let mut decisions = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let draw = draws.next();
                    let asked = (draw < u64::MAX / TIMED_EVERY).then(now);
                    decide(draw).await;
                    decisions += 1;
                    if let Some(asked) = asked {
                        latencies
                            .push(u32::try_from((now() - asked).as_nanos()).unwrap_or(u32::MAX));
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

    latencies.sort_unstable();
    let decisions = decisions.max(1) as f64;
    let at = |share: f64| {
        f64::from(
            latencies
                .get((latencies.len() as f64 * share) as usize)
                .copied()
                .unwrap_or(0),
        ) / 1_000.0
    };
    Round {
        rate: decisions / elapsed.as_secs_f64(),
        client_cpu: (after.client_cpu - before.client_cpu) * 1e6 / decisions,
        server_cpu: (after.server_cpu - before.server_cpu) * 1e6 / decisions,
        p50: at(0.5),
        p99: at(0.99),
        script: (after.script - before.script) / decisions,
        call: (after.script - before.script) / (after.calls - before.calls).max(1.0),
        calls: (after.calls - before.calls) / decisions,
        slow: after.slow - before.slow,
    }
}

/// Sums since the processes began, over all servers.
#[derive(Default)]
pub(crate) struct Meters {
    /// Seconds.
    client_cpu: f64,
    /// Seconds.
    pub(crate) server_cpu: f64,
    /// Microseconds in scripts.
    script: f64,
    /// Calls of scripts.
    pub(crate) calls: f64,
    /// Entries of the slow log.
    slow: f64,
}

impl Meters {
    pub(crate) fn read(servers: &[&RedisServer]) -> Self {
        let mut sums = Self {
            client_cpu: client_cpu(),
            ..Self::default()
        };
        for server in servers {
            sums.server_cpu +=
                info(server, "cpu", "used_cpu_sys:") + info(server, "cpu", "used_cpu_user:");
            let stats = server.command("INFO commandstats").unwrap_or_default();
            let evalsha = stats
                .lines()
                .find_map(|line| line.strip_prefix("cmdstat_evalsha:"))
                .unwrap_or_default();
            let field = |name: &str| {
                evalsha
                    .split(',')
                    .find_map(|field| field.strip_prefix(name)?.parse::<f64>().ok())
                    .unwrap_or(0.0)
            };
            sums.calls += field("calls=");
            sums.script += field("usec=");
            let slow = server.command("SLOWLOG LEN").unwrap_or_default();
            sums.slow += slow
                .trim()
                .trim_start_matches(':')
                .parse::<f64>()
                .unwrap_or(0.0);
        }
        sums
    }
}

/// Returns the seconds of CPU that this process has used, from `/proc/self/stat` (in ticks of 10 ms).
fn client_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name is in parentheses and may hold spaces: count the fields after it. utime and stime.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    [11, 12]
        .iter()
        .filter_map(|&field| fields.get(field)?.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Reads one number from a section of the server's `INFO`.
pub(crate) fn info(server: &RedisServer, section: &str, field: &str) -> f64 {
    let text = server
        .command(&format!("INFO {section}"))
        .unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.trim().parse().ok())
        .unwrap_or(0.0)
}
