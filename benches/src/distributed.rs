//! One hot key over several instances with one Redis: what they admit together, next to what the quota allows.
//!
//! Each instance is a process with a store of its own, and sends its share of the load. Every contender counts windows
//! of a second. The first requests come at a whole second, so the windows that begin with the second and the windows that
//! begin with a request are the same.

use std::env;
use std::fs;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;
use trypema::hybrid::HybridRateLimiterProvider;
use trypema::redis::RedisKey;
use trypema::{RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use crate::Outcome;
use crate::load::Meters;
use crate::report::{Cell, Report, Table};
use crate::turns::{Round, in_turns, now};
use tower_quota_dev::RedisServer;

/// The units of a window of a second.
const UNITS: u32 = 4_000;

const SECOND: u64 = 1_000_000;

/// The microseconds without requests at the end of the last window: a late request does not meet another window.
const PAUSE: u64 = SECOND / 4;

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let (rounds, windows) = if quick { (1, 2) } else { (3, 10) };
    let server = RedisServer::start();
    let mut report = Report::default();
    for (head, instances, load) in [
        ("2 instances, 2 times the quota", 2, 2),
        ("8 instances, 4 times the quota", 8, 4),
    ] {
        let mut table = Table::new(head, &COLUMNS, rounds);
        let contender = |contender: &&'static str| -> Round<'_, Figures> {
            let (contender, server) = (*contender, &server);
            Box::new(move || figures(server, contender, instances, load, windows))
        };
        let all = in_turns(rounds, CONTENDERS.iter().map(contender).collect())?;
        for (name, rounds) in CONTENDERS.iter().zip(all) {
            // The total counts at its worst, and a time at its best.
            let cell = |column: usize| {
                let figures: Vec<f64> = rounds.iter().map(|figures| figures[column]).collect();
                if column < 2 {
                    Some(figures.into_iter().fold(0.0, f64::max).into())
                } else {
                    Cell::lowest(&figures)
                }
            };
            table.row(*name, (0..COLUMNS.len()).map(cell));
        }
        report.tables.push(table);
    }
    Ok(report)
}

const COLUMNS: [&str; 6] = [
    "exceeded %",
    "short %",
    "p50 µs",
    "p99 µs",
    "calls",
    "Redis µs",
];
type Figures = [f64; 6];

/// Returns the figures of one contender in one scenario, on an empty server.
fn figures(
    server: &RedisServer,
    contender: &str,
    instances: u64,
    load: u64,
    windows: u64,
) -> Outcome<Figures> {
    server.command("FLUSHALL")?;
    let before = Meters::read(&[server]);
    let every = SECOND * instances / (u64::from(UNITS) * load);
    let requests = (SECOND * windows - PAUSE) / every;
    // The instances connect within a second.
    let begin = (MonotonicClock::new().now().as_micros() / SECOND + 2) * SECOND;
    let mut nodes = Vec::new();
    for number in 0..instances {
        let first = begin + every * number / instances;
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["distributed-node", &server.url(), contender])
            .args([first, every, requests].map(|argument| argument.to_string()))
            .stdout(Stdio::piped());
        nodes.push(command.spawn()?);
    }
    let mut sum = Tally::default();
    for node in nodes {
        sum.merge(Tally::read(&node.wait_with_output()?.stdout, requests));
    }
    if sum.failed > 0 {
        eprintln!("{contender}: {} requests failed", sum.failed);
    }
    let after = Meters::read(&[server]);
    let asked = (requests * instances) as f64;
    let allowed = f64::from(UNITS) * windows as f64;
    let share = sum.admitted as f64 * 100.0 / allowed;
    Ok([
        (share - 100.0).max(0.0),
        (100.0 - share).max(0.0),
        sum.micros_at(0.5),
        sum.micros_at(0.99),
        (after.calls - before.calls) / asked,
        (after.server_cpu - before.server_cpu) * 1e6 / asked,
    ])
}

/// Decides whether the key may go ahead, or returns `None` without a decision.
type Decide = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Option<bool>> + Send>>>;

const EXACT: &str = "tower-quota, exact";
const LEASED: &str = "tower-quota, leased";
const TRYPEMA: &str = "trypema, hybrid";
#[cfg(feature = "limitador")]
const LIMITADOR: &str = "limitador, cached";
const SCRIPT: &str = "`INCR` and `EXPIRE`";

const CONTENDERS: &[&str] = &[
    EXACT,
    LEASED,
    TRYPEMA,
    #[cfg(feature = "limitador")]
    LIMITADOR,
    SCRIPT,
];

/// Long enough for every answer: a missed one would hide a latency.
const DEADLINE: Duration = Duration::from_secs(2);

/// Connects a contender.
async fn connect(contender: &str, url: &str) -> Outcome<Decide> {
    match contender {
        EXACT => Ok(through(store(url).await?)),
        LEASED => Ok(through(Leased::new(store(url).await?))),
        TRYPEMA => trypema(url).await,
        #[cfg(feature = "limitador")]
        LIMITADOR => limitador(url).await,
        SCRIPT => script(url).await,
        _ => Err(format!("there is no contender {contender}").into()),
    }
}

async fn store(url: &str) -> Outcome<RedisStore> {
    Ok(RedisStore::options()
        .deadline(DEADLINE)
        .connect(url)
        .await?)
}

/// Decides with a store of tower-quota.
fn through(store: impl Store) -> Decide {
    let quota = Quota::per_second(UNITS.into()).fixed_window();
    let key = Key::number(Name::new("client"), 1);
    Box::new(move || {
        let decided = store.check(&[Charge::new("requests", &quota, &key)]);
        Box::pin(async move { Some(decided.await.ok()?.is_allowed()) })
    })
}

/// trypema's hybrid provider, which counts in memory and writes to Redis every 10 ms, its default.
async fn trypema(url: &str) -> Outcome<Decide> {
    let connection = redis::Client::open(url)?.get_connection_manager().await?;
    let provider = HybridRateLimiterProvider::builder(connection)
        .window_size(WindowSize::seconds(1)?)
        .build()?;
    let rate = RateLimit::per_second(UNITS.into())?;
    let key = RedisKey::try_from("client".to_owned())?;
    Ok(Box::new(move || {
        let (provider, key) = (Arc::clone(&provider), key.clone());
        Box::pin(async move {
            // The documentation of trypema recommends this order for hot paths.
            let decision = match provider.absolute().try_inc(key.as_key_ref(), 1) {
                Ok(Some(decision)) => decision,
                _ => provider.absolute().inc(&key, &rate, 1).await.ok()?,
            };
            Some(matches!(decision, RateLimitDecision::Allowed))
        })
    }))
}

/// The script that most services write.
async fn script(url: &str) -> Outcome<Decide> {
    const WINDOW: &str = "
        local used = redis.call('INCR', KEYS[1])
        if used == 1 then redis.call('EXPIRE', KEYS[1], 1) end
        return used <= tonumber(ARGV[1]) and 1 or 0";
    let (connection, sha) = crate::redis::connect(url, DEADLINE, WINDOW).await?;
    Ok(Box::new(move || {
        let mut connection = connection.clone();
        let mut call = redis::cmd("EVALSHA");
        call.arg(&sha).arg(1).arg("client").arg(UNITS);
        Box::pin(async move { call.query_async(&mut connection).await.ok() })
    }))
}

/// limitador's cached Redis storage, which counts in memory and writes to Redis in the background.
#[cfg(feature = "limitador")]
async fn limitador(url: &str) -> Outcome<Decide> {
    use limitador::limit::{Context, Limit};
    use limitador::storage::redis::CachedRedisStorageBuilder;

    // The default is a second, which is the length of the window.
    let storage = CachedRedisStorageBuilder::new(url)
        .flushing_period(Duration::from_millis(50))
        .build()
        .await?;
    let limiter = limitador::AsyncRateLimiter::new_with_storage(Box::new(storage));
    let variables = vec!["client".try_into()?];
    limiter.add_limit(Limit::new("clients", UNITS.into(), 1, vec![], variables));
    let limiter = Arc::new(limiter);
    Ok(Box::new(move || {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move {
            let variables = [("client".to_owned(), "1".to_owned())];
            let context = Context::from(std::collections::HashMap::from(variables));
            let checked = limiter
                .check_rate_limited_and_update(&"clients".into(), &context, 1)
                .await;
            Some(!checked.ok()?.limited)
        })
    }))
}

/// A request fails if its answer takes longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The arguments of an instance.
#[derive(Args, Debug)]
pub(crate) struct Node {
    url: String,
    contender: String,
    /// The instant of the first request, in microseconds of the machine's clock.
    first: u64,
    /// The microseconds between two requests.
    every: u64,
    requests: u64,
}

/// Connects, sends the requests, and prints the tally as JSON.
pub(crate) fn node(node: &Node) -> Outcome {
    // Some systems end a sleep 50 us late to save power, and keep to it where they permit no less.
    let _ = fs::write("/proc/self/timerslack_ns", "1000");
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let decide = runtime.block_on(connect(&node.contender, &node.url))?;
    let tally = offer(&runtime, &decide, node)?;
    println!("{}", serde_json::to_string(&tally)?);
    Ok(())
}

/// Polls each request where it is sent, as a handler does, and spawns a task only if the request has to wait.
fn offer(runtime: &Runtime, decide: &Decide, node: &Node) -> Result<Tally, JoinError> {
    let _entered = runtime.enter();
    let clock = MonotonicClock::new();
    let (mut tally, mut waiting) = (Tally::default(), JoinSet::new());
    let ahead = node.first.saturating_sub(clock.now().as_micros());
    let first = now() + Duration::from_micros(ahead);
    for request in 0..node.requests {
        let planned = first + Duration::from_micros(node.every * request);
        #[expect(clippy::disallowed_methods, reason = "the plan is in real time")]
        thread::sleep(planned.saturating_duration_since(now()));
        let mut decided = decide();
        let mut context = Context::from_waker(Waker::noop());
        match decided.as_mut().poll(&mut context) {
            Poll::Ready(answer) => tally.count(answer, now() - planned),
            Poll::Pending => {
                waiting.spawn(async move {
                    let answer = timeout(PATIENCE, decided).await.unwrap_or(None);
                    (answer, now() - planned)
                });
            }
        }
        while let Some(answered) = waiting.try_join_next() {
            let (answer, latency) = answered?;
            tally.count(answer, latency);
        }
    }
    for (answer, latency) in runtime.block_on(waiting.join_all()) {
        tally.count(answer, latency);
    }
    Ok(tally)
}

/// The answers to the requests of one instance, or of all.
#[derive(Default, Serialize, Deserialize)]
struct Tally {
    admitted: u64,
    /// Requests without a decision.
    failed: u64,
    /// The microseconds from the planned instant of each request to its answer.
    latencies: Vec<u32>,
}

impl Tally {
    /// Reads the output of an instance. If the instance ended early, all of its requests failed.
    fn read(output: &[u8], requests: u64) -> Self {
        serde_json::from_slice(output).unwrap_or_else(|_| Self {
            failed: requests,
            ..Self::default()
        })
    }

    /// Counts an answer, or `None` for a request without a decision.
    fn count(&mut self, is_admitted: Option<bool>, latency: Duration) {
        match is_admitted {
            Some(true) => self.admitted += 1,
            Some(false) => {}
            None => self.failed += 1,
        }
        self.latencies
            .push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
    }

    fn merge(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.failed += other.failed;
        self.latencies.extend(other.latencies);
    }

    /// Returns the microseconds that this share of the answers took at most, or 0 without answers.
    fn micros_at(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let position = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(position).copied().map_or(0.0, f64::from)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tally;

    #[test]
    fn merged_tallies_give_common_figures() {
        let mut sum = Tally::default();
        for micros in 1..100 {
            sum.count(Some(true), Duration::from_micros(micros));
        }
        let mut other = Tally::default();
        other.count(Some(false), Duration::from_millis(1));
        other.count(None, Duration::from_secs(5_000));
        let output = serde_json::to_vec(&other).unwrap();
        sum.merge(Tally::read(&output, 7));
        assert_eq!((sum.admitted, sum.failed), (99, 1));
        assert!((sum.micros_at(0.5) - 51.0).abs() < 0.1);
        assert!((sum.micros_at(0.985) - 1_000.0).abs() < 0.1);
    }

    #[test]
    fn instance_without_tally_fails_its_requests() {
        let mut sum = Tally::read(b"", 7);
        assert_eq!((sum.admitted, sum.failed), (0, 7));
        assert!(sum.micros_at(0.5).abs() < 0.1);
    }
}
