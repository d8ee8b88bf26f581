//! Rules that change once a second under load: twenty processes on one Redis, with and without changes.
//!
//! Each document has two limits that change together. A decision that shows one of each document was mixed of two, and
//! the counters must hold exactly what was admitted.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::Request;
use clap::Args;
use serde::{Deserialize, Serialize};
use tower::{Layer, Service};
use tower_quota::store::{Charge, Operation};
use tower_quota::{Key, Name, Policy, Quota, RateLimitLayer, RedisStore, Store};
use tower_quota_live::{LiveOptions, LiveRules, NewVersion, RedisRules, RuleStore};

use crate::Outcome;
use crate::layer::Trivial;
use crate::report::{Report, Table};
use crate::turns::{now, rest};
use tower_quota_dev::RedisServer;

const NODES: usize = 20;
/// The time that the processes have to connect.
const START: Duration = Duration::from_secs(10);
/// The time that the processes take to reach their pace.
const WARM_UP: Duration = Duration::from_secs(3);
/// The names of the two limits.
const LIMITS: [Name; 2] = [Name::new("one"), Name::new("two")];
/// The units of the first document; each later one has a unit more. None is used up.
const UNITS: u64 = 1_000_000_000;

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let (quiet, changes) = if quick { (4, 8) } else { (30, 60) };
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(storm(&server, Duration::from_secs(quiet), changes))
}

async fn storm(server: &RedisServer, quiet: Duration, changes: u32) -> Outcome<Report> {
    let rules = RedisRules::new(&server.url(), "bench")?;
    rules.put(None, document(0)).await?;
    let span = WARM_UP + quiet * 2 + Duration::from_secs(changes.into());
    let begin = micros() + START.as_micros() as u64;
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["reload-node", &server.url()])
            .args([begin, span.as_micros() as u64].map(|argument| argument.to_string()))
            .stdout(Stdio::piped());
        nodes.push(command.spawn()?);
    }
    rest(START + WARM_UP).await;
    let began = micros();
    rest(quiet).await;
    let mut put = Vec::new();
    let storm_began = micros();
    for change in 1..=changes {
        put.push(micros());
        rules.put(None, document(change.into())).await?;
        let next = storm_began + u64::from(change) * 1_000_000;
        rest(Duration::from_micros(next.saturating_sub(micros()))).await;
    }
    let storm_ended = micros();
    rest(quiet).await;
    let ended = micros();
    let mut tallies = Vec::new();
    for node in nodes {
        tallies.push(serde_json::from_slice(&node.wait_with_output()?.stdout)?);
    }
    let sum = Tally::sum(tallies);

    let rate = |from, to| sum.decided_in(from, to) as f64 * 1e6 / (to - from) as f64;
    let calm = (rate(began, storm_began) + rate(storm_ended, ended)) / 2.0;
    let changing = rate(storm_began, storm_ended);
    let mut delays = sum.delays(&put);
    let expected = NODES * put.len();
    let missing = expected - delays.len();
    delays.sort_unstable();
    let millis =
        |micros: Option<&u64>| micros.map_or(f64::INFINITY, |micros| *micros as f64 / 1_000.0);
    let (middle, longest) = (millis(delays.get(delays.len() / 2)), millis(delays.last()));
    let lost = lost(server, &sum).await?;

    if missing > 0 {
        return Err(format!("{missing} documents did not come into force").into());
    }
    let mut table = Table::new("twenty processes", &COLUMNS, 1);
    let figures = [calm, changing, middle, longest].into_iter();
    let counts = [sum.failed, sum.mixed, lost].map(|count| count as f64);
    table.row(
        "a change a second",
        figures.chain(counts).map(|figure| Some(figure.into())),
    );
    Ok(Report::of([table]))
}

const COLUMNS: [&str; 7] = [
    "decisions/s, no changes",
    "with changes",
    "in force, p50 ms",
    "max ms",
    "failed",
    "mixed",
    "units lost",
];

fn document(change: u64) -> NewVersion {
    let quota = format!("{}/day fixed_window from_first_request", UNITS + change);
    let limits = LIMITS.map(|name| format!("  - {{ name: {name}, quota: {quota}, key: none }}\n"));
    NewVersion::new(format!("limits:\n{}", limits.concat()), "bench")
}

/// Returns by how many units the counters differ from what was admitted.
async fn lost(server: &RedisServer, sum: &Tally) -> Outcome<u64> {
    let store = RedisStore::connect(&server.url()).await?;
    let mut lost = 0;
    for name in LIMITS {
        let quota = Quota::per_day(sum.newest)
            .fixed_window()
            .from_first_request();
        let decision = store
            .apply(
                Operation::Peek,
                &[Charge::new(name, &quota, &Key::EVERYONE)],
            )
            .await?;
        let status = decision
            .statuses()
            .first()
            .ok_or("a peek without a status")?;
        lost += (status.limit - status.remaining()).abs_diff(sum.admitted);
    }
    Ok(lost)
}

/// The requests that a process has under way.
const OUTSTANDING: usize = 16;

/// The arguments of a process.
#[derive(Args, Debug)]
pub(crate) struct Node {
    url: String,
    /// The instant at which the load begins, in microseconds since the epoch, and its length.
    begin: u64,
    span: u64,
}

/// Connects, sends requests from the planned instant on, and prints the tally as JSON.
pub(crate) fn node(node: &Node) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let tally = Arc::new(Mutex::new(Tally::default()));
        // A late answer would be counted as an error of the change: twenty processes share two cores.
        let store = RedisStore::options()
            .deadline(Duration::from_secs(2))
            .connect(&node.url)
            .await?;
        let counted = Arc::clone(&tally);
        let layer = RateLimitLayer::new(store, Policy::new())
            .headers([])
            .on_decision(move |decided| {
                let mut tally = counted.lock().unwrap_or_else(PoisonError::into_inner);
                let units = |name| decided.decision?.status(name).map(|status| status.limit);
                match (decided.is_degraded, LIMITS.map(|name| units(name.as_str()))) {
                    (false, [Some(one), Some(other)]) => {
                        tally.decided([one, other], decided.reason.is_none())
                    }
                    _ => tally.failed += 1,
                }
            });
        let live = LiveRules::start(
            layer.handle(),
            RedisRules::new(&node.url, "bench")?,
            LiveOptions::new(),
        )
        .await?;
        rest(Duration::from_micros(node.begin.saturating_sub(micros()))).await;
        let until = now() + Duration::from_micros(node.span);
        let service = layer.layer(Trivial);
        let workers: Vec<_> = (0..OUTSTANDING)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    while now() < until {
                        let _ = service.call(Request::new(Body::empty())).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await?;
        }
        live.close(Duration::from_secs(2)).await;
        let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", serde_json::to_string(&*tally)?);
        Ok(())
    })
}

/// The length of a span whose decisions are counted together, in microseconds.
const SPAN: u64 = 100_000;

/// The counts of a process, or of all of them together.
#[derive(Default, Serialize, Deserialize)]
struct Tally {
    /// Decisions by the number of the span, since the epoch.
    decided: BTreeMap<u64, u64>,
    /// The instants of the first decision by each number of units.
    first: Vec<BTreeMap<u64, u64>>,
    admitted: u64,
    /// Requests that the store did not decide.
    failed: u64,
    /// Decisions by two documents.
    mixed: u64,
    /// The most units that a decision has shown.
    newest: u64,
}

impl Tally {
    /// Counts a decision by limits of these units.
    fn decided(&mut self, [one, other]: [u64; 2], is_admitted: bool) {
        let now = micros();
        *self.decided.entry(now / SPAN).or_default() += 1;
        self.admitted += u64::from(is_admitted);
        self.mixed += u64::from(one != other);
        if one > self.newest {
            self.newest = one;
            if self.first.is_empty() {
                self.first.push(BTreeMap::new());
            }
            self.first[0].insert(one, now);
        }
    }

    fn sum(tallies: Vec<Self>) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            for (span, decisions) in tally.decided {
                *sum.decided.entry(span).or_default() += decisions;
            }
            sum.first.extend(tally.first);
            sum.admitted += tally.admitted;
            sum.failed += tally.failed;
            sum.mixed += tally.mixed;
            sum.newest = sum.newest.max(tally.newest);
        }
        sum
    }

    /// Returns the decisions in the full spans between two instants.
    fn decided_in(&self, from: u64, to: u64) -> u64 {
        self.decided
            .range(from / SPAN..to / SPAN)
            .map(|(_, decisions)| decisions)
            .sum()
    }

    /// Returns the microseconds from each put until a process first decided by its document or a later one.
    ///
    /// A process that skipped a document for the next is counted with the next.
    fn delays(&self, put: &[u64]) -> Vec<u64> {
        let first_from =
            |seen: &BTreeMap<u64, u64>, units| seen.range(units..).next().map(|(_, first)| *first);
        let of_process = |seen: &BTreeMap<u64, u64>| -> Vec<u64> {
            let numbered = put.iter().zip(UNITS + 1..);
            numbered
                .filter_map(|(put, units)| Some(first_from(seen, units)?.saturating_sub(*put)))
                .collect()
        };
        self.first.iter().flat_map(of_process).collect()
    }
}

/// Returns the microseconds since the epoch: one clock for all processes.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_document_counts_with_the_next() {
        let seen = BTreeMap::from([(UNITS, 10), (UNITS + 2, 2_500)]);
        let tally = Tally {
            first: vec![seen],
            ..Tally::default()
        };
        assert_eq!(tally.delays(&[1_000, 2_000]), [1_500, 500]);
        assert_eq!(
            tally.delays(&[1_000, 2_000, 3_000]).len(),
            2,
            "the third never came into force"
        );
    }

    #[test]
    fn different_units_are_a_mixture() {
        let mut tally = Tally::default();
        tally.decided([UNITS, UNITS], true);
        tally.decided([UNITS, UNITS + 1], false);
        assert_eq!((tally.admitted, tally.mixed), (1, 1));
    }
}
