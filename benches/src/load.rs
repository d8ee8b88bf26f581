//! Many tasks that decide one key after another for a while.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_quota_testkit::RedisServer;

use crate::timing::now;

/// What one round of load came to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Round {
    /// Decisions per second of wall time.
    pub(crate) rate: f64,
    /// Microseconds of this process' CPU per decision.
    pub(crate) client_cpu: f64,
    /// Microseconds of the server's CPU per decision.
    pub(crate) server_cpu: f64,
    /// Microseconds a decision took, median.
    pub(crate) p50: f64,
    /// Microseconds a decision took, 99th percentile.
    pub(crate) p99: f64,
}

/// Uniform keys, cheaply: a 64-bit xorshift (Marsaglia, 2003) per task.
pub(crate) struct Keys {
    state: u64,
    range: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64, range: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, range }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % self.range
    }
}

/// Runs `decide` in `tasks` tasks over uniform keys until `span` has passed.
pub(crate) async fn run<D, F>(server: &RedisServer, tasks: u64, keys: u64, span: Duration, decide: D) -> Round
where
    D: Fn(u64) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let stop = Arc::new(AtomicBool::new(false));
    let before = (now(), client_cpu(), server_cpu(server));
    let workers: Vec<_> = (0..tasks)
        .map(|task| {
            let (decide, stop) = (decide.clone(), Arc::clone(&stop));
            let mut keys = Keys::new(task + 1, keys);
            tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(1 << 16);
                while !stop.load(Ordering::Relaxed) {
                    let asked = now();
                    decide(keys.next()).await;
                    latencies.push(u32::try_from((now() - asked).as_nanos()).unwrap_or(u32::MAX));
                }
                latencies
            })
        })
        .collect();
    #[expect(clippy::disallowed_methods, reason = "the length of a round")]
    tokio::time::sleep(span).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.unwrap_or_default());
    }
    let after = (now(), client_cpu(), server_cpu(server));

    latencies.sort_unstable();
    let decisions = latencies.len().max(1) as f64;
    let at = |share: f64| f64::from(latencies.get((decisions * share) as usize).copied().unwrap_or(0)) / 1_000.0;
    Round {
        rate: decisions / (after.0 - before.0).as_secs_f64(),
        client_cpu: (after.1 - before.1) * 1e6 / decisions,
        server_cpu: (after.2 - before.2) * 1e6 / decisions,
        p50: at(0.5),
        p99: at(0.99),
    }
}

/// Seconds of CPU this process has used, from `/proc/self/stat` (in ticks of 10 ms).
fn client_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name is in parentheses and may hold spaces: count the fields after it. utime and stime.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].iter().filter_map(|&field| fields.get(field)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Seconds of CPU the server has used, from `INFO cpu`.
fn server_cpu(server: &RedisServer) -> f64 {
    info(server, "cpu", "used_cpu_sys:") + info(server, "cpu", "used_cpu_user:")
}

/// One number out of a section of the server's `INFO`.
pub(crate) fn info(server: &RedisServer, section: &str, field: &str) -> f64 {
    let text = server.command(&format!("INFO {section}")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(field)?.trim().parse().ok()).unwrap_or(0.0)
}
