//! One cell: some processes, each with its store, that offer a load to one Redis.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tower_quota_testkit::RedisServer;

use super::latencies::Latencies;
use super::offer::Tally;
use super::path::Contender;
use super::plan::Plan;
use crate::load::Meters;

/// A running process.
pub(super) struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// The numbers that a cell adds up from its processes.
pub(super) struct Sum {
    pub(super) asked: u64,
    pub(super) admitted: u64,
    /// The requests that the quotas allow: of each client no more than it asked.
    pub(super) allowed: u64,
    /// Admitted beyond the quotas.
    pub(super) over: u64,
    pub(super) failed: u64,
    pub(super) lost: u64,
    cpu: f64,
    latencies: Latencies,
    delays: Latencies,
}

/// Runs a cell on an empty server. Returns its figures and adds its latencies to those of all cells.
pub(super) fn run(
    server: &RedisServer,
    contender: Contender,
    plan: Plan,
    of_all: &mut Latencies,
) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    server.command("FLUSHALL")?;
    let url = server.url();
    let mut nodes = start(contender, plan, DEADLINE_MS, |_| url.clone(), false)?;
    let before = Meters::read(&[server]);
    go(&mut nodes)?;
    let tallies = nodes
        .into_iter()
        .map(|node| node.tally()?.1.ok_or_else(|| "a process was killed".into()));
    let tallies: Vec<Tally> = tallies.collect::<Result<_, Box<dyn Error>>>()?;
    let after = Meters::read(&[server]);
    let sum = Sum::of(&tallies, contender, &plan, 0);
    of_all.merge(&sum.latencies);
    let decisions = sum.asked.max(1) as f64;
    let mut figures = sum.admissions();
    figures.extend(sum.latencies.percentiles());
    figures.extend([
        ("late p99 us", sum.delays.micros_at(0.99)),
        ("calls", (after.calls - before.calls) / decisions),
        (
            "redis us",
            (after.server_cpu - before.server_cpu) * 1e6 / decisions,
        ),
        ("client us", sum.cpu * 1e6 / decisions),
    ]);
    Ok(figures)
}

/// Long enough for every answer: a missed one would hide a latency.
const DEADLINE_MS: u64 = 2_000;

/// Starts the processes of a cell and waits until they are connected. `url` is asked for each process' server.
pub(super) fn start(
    contender: Contender,
    plan: Plan,
    deadline_ms: u64,
    url: impl Fn(u32) -> String,
    is_loud: bool,
) -> Result<Vec<Running>, Box<dyn Error>> {
    let children = (0..plan.nodes).map(|node| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["distributed-node", &url(node), contender.argument()]);
        command
            .args(Plan { node, ..plan }.arguments())
            .arg(deadline_ms.to_string());
        if is_loud {
            command.arg("--loud");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    });
    let children = children.collect::<Result<Vec<_>, _>>()?;
    children.into_iter().map(Running::ready).collect()
}

/// Lets all processes begin.
pub(super) fn go(nodes: &mut [Running]) -> Result<(), Box<dyn Error>> {
    for node in nodes {
        node.child
            .stdin
            .take()
            .ok_or("a process without input")?
            .write_all(b"go\n")?;
    }
    Ok(())
}

impl Running {
    fn ready(mut child: Child) -> Result<Self, Box<dyn Error>> {
        let mut output = BufReader::new(child.stdout.take().ok_or("a process without output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line != "ready\n" {
            return Err(format!("a process ended with {}", child.wait()?).into());
        }
        Ok(Self { child, output })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process without a chance to react.
    pub(super) fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill()
    }

    /// Waits for the end of the process. Returns the admitted requests that it wrote out, and its tally unless it was
    /// killed.
    pub(super) fn tally(mut self) -> Result<(u64, Option<Tally>), Box<dyn Error>> {
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        let tally = text.trim_start_matches('+');
        let loud = (text.len() - tally.len()) as u64;
        Ok((
            loud,
            if tally.is_empty() {
                None
            } else {
                Some(serde_json::from_str(tally)?)
            },
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended is left as it is.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sum {
    /// Adds up tallies, and the requests of one client that killed processes were admitted.
    pub(super) fn of(tallies: &[Tally], contender: Contender, plan: &Plan, killed: u64) -> Self {
        let began = tallies.iter().map(|tally| tally.began).min().unwrap_or(0);
        let ended = tallies.iter().map(|tally| tally.ended).max().unwrap_or(0);
        let span = Duration::from_micros(ended.saturating_sub(began));
        let allowed = contender.allowed(plan.traffic.rate(), span);
        let mut sum = Self {
            asked: 0,
            admitted: 0,
            allowed: 0,
            over: 0,
            failed: tallies.iter().map(|tally| tally.failed).sum(),
            lost: tallies.iter().map(|tally| tally.lost).sum(),
            cpu: tallies.iter().map(|tally| tally.cpu).sum(),
            latencies: Latencies::new(),
            delays: Latencies::new(),
        };
        for client in 0..plan.traffic.clients() as usize {
            let of_client = |part: fn(&(u64, u64)) -> u64| {
                tallies
                    .iter()
                    .filter_map(|tally| tally.clients.get(client))
                    .map(part)
                    .sum::<u64>()
            };
            let (asked, mut admitted) = (
                of_client(|(asked, _)| *asked),
                of_client(|(_, admitted)| *admitted),
            );
            if client == 0 {
                admitted += killed;
            }
            sum.asked += asked;
            sum.admitted += admitted;
            sum.allowed += allowed.min(asked + killed);
            sum.over += admitted.saturating_sub(allowed);
        }
        for tally in tallies {
            sum.latencies.merge(&tally.latencies);
            sum.delays.merge(&tally.delays);
        }
        sum
    }

    /// Returns the figures of what was admitted.
    pub(super) fn admissions(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("asked", self.asked as f64),
            ("admitted", self.admitted as f64),
            ("allowed", self.allowed as f64),
            (
                "admitted %",
                self.admitted as f64 * 100.0 / self.allowed.max(1) as f64,
            ),
            ("over", self.over as f64),
            ("failed", self.failed as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;
    use crate::distributed::offer::Tally;
    use crate::distributed::path::Contender;
    use crate::distributed::plan::{Plan, Traffic};

    /// Returns a tally of a second, with the requests and admissions of the first clients.
    fn tally(began: u64, clients: &[(u64, u64)]) -> Tally {
        let mut tally = Tally::new(began, 20);
        tally.clients[..clients.len()].copy_from_slice(clients);
        tally.ended += 1_000_000;
        tally
    }

    #[test]
    fn sum_judges_each_client_alone() {
        let plan = Plan {
            traffic: Traffic::Even,
            load: 1.0,
            nodes: 2,
            node: 0,
            seconds: 1.0,
        };
        // Two hundred at once and as many a second, for a second and a half.
        let tallies = [
            tally(0, &[(500, 300), (10, 10)]),
            tally(500_000, &[(500, 225)]),
        ];
        let sum = Sum::of(&tallies, Contender::Exact, &plan, 0);
        assert_eq!((sum.asked, sum.admitted), (1_010, 535));
        // The second client leaves units unused, which are not the first one's.
        assert_eq!((sum.allowed, sum.over), (510, 25));
        assert_eq!(Sum::of(&tallies, Contender::Exact, &plan, 7).over, 32);
    }
}
