//! Rules that change once a second under load: twenty processes on one Redis, with and without changes.
//!
//! Each document has two limits that change together. A decision that shows one of each document was mixed of two, and
//! the counters must hold exactly what was admitted.

mod node;
mod tally;

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tower_quota::{
    Key, Name, RedisStore, Store,
    store::{Charge, Operation},
};
use tower_quota_live::{NewVersion, RedisRules, RuleStore};
use tower_quota_rules::Format;
use tower_quota_testkit::RedisServer;

pub(crate) use self::node::{Node, run as node};
use self::tally::Tally;
use crate::report::Report;
use crate::timing::rest;

const NODES: usize = 20;
/// The time that the processes take to reach their pace.
const WARM_UP: Duration = Duration::from_secs(3);
/// The names of the two limits.
const LIMITS: [Name; 2] = [Name::new("one"), Name::new("two")];
/// The units of the first document; each later one has a unit more. None is used up.
const UNITS: u64 = 1_000_000_000;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (quiet, changes) = if quick { (4, 8) } else { (30, 60) };
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(storm(&server, Duration::from_secs(quiet), changes))
}

async fn storm(
    server: &RedisServer,
    quiet: Duration,
    changes: u32,
) -> Result<Report, Box<dyn Error>> {
    let rules = RedisRules::new(&server.url(), "bench")?;
    rules.put(None, document(0)).await?;
    let span = WARM_UP + quiet * 2 + Duration::from_secs(changes.into());
    let nodes = (0..NODES)
        .map(|_| Running::start(&server.url(), span))
        .collect::<Result<Vec<_>, _>>()?;
    let mut nodes = nodes
        .into_iter()
        .map(Running::ready)
        .collect::<Result<Vec<_>, _>>()?;
    nodes.iter_mut().try_for_each(Running::go)?;
    rest(WARM_UP).await;
    let began = tally::now();
    rest(quiet).await;
    let mut put = Vec::new();
    let storm_began = tally::now();
    for change in 1..=changes {
        put.push(tally::now());
        rules.put(None, document(change.into())).await?;
        let next = storm_began + u64::from(change) * 1_000_000;
        rest(Duration::from_micros(next.saturating_sub(tally::now()))).await;
    }
    let storm_ended = tally::now();
    rest(quiet).await;
    let ended = tally::now();
    let sum = Tally::sum(
        nodes
            .into_iter()
            .map(Running::tally)
            .collect::<Result<Vec<_>, _>>()?,
    );

    let rate =
        |from: u64, to: u64| sum.decided_in(from, to) as f64 * 1e6 / (to - from).max(1) as f64;
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

    let mut report = Report::default();
    report.row(
        "reload/20-processes",
        "tower-quota",
        vec![
            ("decisions/s without changes", calm),
            ("decisions/s with changes", changing),
            ("in force p50 ms", middle),
            ("in force max ms", longest),
            ("not in force", missing as f64),
            ("failed", sum.failed as f64),
            ("mixed", sum.mixed as f64),
            ("units lost", lost as f64),
        ],
    );
    let is_zero = |count: u64| if count == 0 { 1.0 } else { 0.0 };
    report.ratio("reload/throughput", changing / calm);
    report.ratio("reload/in-force-p50", 100.0 / middle);
    report.ratio("reload/in-force-max", 2_000.0 / longest);
    report.ratio("reload/all-in-force", is_zero(missing as u64));
    report.ratio(
        "reload/no-error-or-mixture",
        is_zero(sum.failed + sum.mixed),
    );
    report.ratio("reload/nothing-lost", is_zero(lost));
    Ok(report)
}

fn document(change: u64) -> NewVersion {
    let quota = format!("{}/day fixed_window from_first_request", UNITS + change);
    let limits = LIMITS.map(|name| format!("  - {{ name: {name}, quota: {quota}, key: none }}\n"));
    NewVersion::new(
        format!("limits:\n{}", limits.concat()),
        Format::Yaml,
        "bench",
    )
}

/// Returns by how many units the counters differ from what was admitted.
async fn lost(server: &RedisServer, sum: &Tally) -> Result<u64, Box<dyn Error>> {
    let store = RedisStore::connect(&server.url()).await?;
    let mut lost = 0;
    for name in LIMITS {
        let quota = tower_quota::Quota::per_day(sum.newest)
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

/// A running process.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(url: &str, span: Duration) -> Result<Self, Box<dyn Error>> {
        let millis = span.as_millis().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["reload-node", url, &millis])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("a process without output")?);
        Ok(Self { child, output })
    }

    fn ready(mut self) -> Result<Self, Box<dyn Error>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line == "ready\n" {
            Ok(self)
        } else {
            Err("a process did not start".into())
        }
    }

    fn go(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self
            .child
            .stdin
            .take()
            .ok_or("a process without input")?
            .write_all(b"go\n")?)
    }

    fn tally(mut self) -> Result<Tally, Box<dyn Error>> {
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended is left as it is.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
