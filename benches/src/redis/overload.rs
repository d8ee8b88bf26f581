//! More requests than the server can decide: how many are answered in time.
//!
//! The server is behind a link that carries so many bytes a second, in the order in which they come: as a server does
//! that works at this rate, but at the same one whatever else this machine does.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::RedisStore;

use super::contenders::{GCRA, SCRIPT, Shape, TOWER_QUOTA, connect, script_per_limit, tower_quota};
use crate::report::Report;
use crate::timing::{now, rest};
use crate::traffic::Draws;

/// The link's bytes a second, at which this machine is always faster: some twelve hundred decisions.
const SLOW: Fault = Fault::Slow(260_000);
/// Stores, as in eight instances of a service.
const STORES: u64 = 8;
/// The deadline of a request, tower-quota's default.
const DEADLINE: Duration = Duration::from_millis(50);
/// The offered rates, in multiples of the capacity. Half of it follows, to show the recovery.
const OFFERED: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

pub(super) async fn measure(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let span = Duration::from_secs(if quick { 2 } else { 10 });
    let server = RedisServer::start();
    let link = FaultProxy::to(server.port());
    let mut stores = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..STORES {
        let store = RedisStore::options()
            .deadline(DEADLINE)
            .connect(&link.url())
            .await?;
        tower_quota(&store, Shape::Three, 0).await;
        stores.push(store);
        connections.push(connect(&link.url(), DEADLINE, GCRA).await?);
    }
    // The scripts are known by now.
    link.inflict(SLOW);
    let (stores, connections) = (Arc::new(stores), Arc::new(connections));
    let ours = move |draw: u64| {
        let stores = Arc::clone(&stores);
        async move { tower_quota(&stores[(draw % STORES) as usize], Shape::Three, draw).await }
    };
    let goodput = contender(TOWER_QUOTA, span, ours, report).await;
    report.ratio("redis/overload-goodput", goodput);
    let theirs = move |draw: u64| {
        let connections = Arc::clone(&connections);
        async move {
            let (connection, sha) = &connections[(draw % STORES) as usize];
            script_per_limit(&mut connection.clone(), sha, Shape::Three, draw).await
        }
    };
    contender(SCRIPT, span, theirs, report).await;
    Ok(())
}

/// Reports a contender's answers at each offered rate. Returns the share of its capacity at the highest.
async fn contender<D, F>(name: &str, span: Duration, decide: D, report: &mut Report) -> f64
where
    D: Fn(u64) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let capacity = capacity(span, decide.clone()).await;
    report.row(
        "redis/overload/capacity",
        name,
        vec![("answers/s", capacity)],
    );
    let mut goodput = 0.0;
    for multiple in OFFERED {
        let answers = offer(capacity * multiple, span, decide.clone()).await;
        // The first second after it, with half of what the server can do.
        let after = offer(capacity / 2.0, Duration::from_secs(1), decide.clone()).await;
        goodput = answers.rate / capacity;
        let figures = vec![
            ("offered/s", capacity * multiple),
            ("answers/s", answers.rate),
            ("share of capacity", goodput),
            ("p99 ms", answers.p99),
            ("answered % in the second after", after.percent),
        ];
        report.row(&format!("redis/overload/{multiple}x"), name, figures);
        rest(Duration::from_secs(1)).await;
    }
    goodput
}

/// Returns the most answers in time per second, at rates that grow until most requests fail.
async fn capacity<D, F>(span: Duration, decide: D) -> f64
where
    D: Fn(u64) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let (mut rate, mut most, mut misses) = (100.0, 0.0_f64, 0);
    while misses < 2 {
        let answers = offer(rate, span / 5, decide.clone()).await;
        most = most.max(answers.rate);
        misses = if answers.percent < 50.0 {
            misses + 1
        } else {
            0
        };
        rate *= 1.25;
    }
    most
}

/// The answers to the offered requests.
struct Answers {
    /// Answers in time, per second.
    rate: f64,
    /// The same as a percentage of the requests.
    percent: f64,
    /// Milliseconds that an answer took, 99th percentile.
    p99: f64,
}

/// Sends requests at a rate, whether or not earlier ones were answered.
async fn offer<D, F>(rate: f64, span: Duration, decide: D) -> Answers
where
    D: Fn(u64) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    // A count per half millisecond up to the deadline and some scheduling.
    let counts: Arc<[AtomicU64; 128]> = Arc::new([const { AtomicU64::new(0) }; 128]);
    let (mut draws, mut sent) = (Draws::new(1), 0_u64);
    let began = now();
    while now() - began < span {
        let due = ((now() - began).as_secs_f64() * rate) as u64;
        while sent < due {
            let (decided, counts, asked) = (decide(draws.next()), Arc::clone(&counts), now());
            tokio::spawn(async move {
                if decided.await {
                    let half_millis = (now() - asked).as_micros() / 500;
                    counts[(half_millis as usize).min(127)].fetch_add(1, Ordering::Relaxed);
                }
            });
            sent += 1;
        }
        rest(Duration::from_millis(1)).await;
    }
    rest(DEADLINE * 2).await;
    let counts: Vec<u64> = counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    let in_time: u64 = counts[..=(DEADLINE.as_micros() / 500 + 10) as usize]
        .iter()
        .sum();
    let mut seen = 0;
    let p99 = counts.iter().position(|count| {
        seen += count;
        seen * 100 >= in_time * 99
    });
    Answers {
        rate: in_time as f64 / span.as_secs_f64(),
        percent: in_time as f64 * 100.0 / sent.max(1) as f64,
        p99: p99.unwrap_or(0) as f64 / 2.0,
    }
}
