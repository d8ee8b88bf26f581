//! The cells of several processes in virtual time, and a fleet that no machine here could run.
//!
//! The same code decides: `Leased` over a `MemoryStore`, behind a network that delays, in a paused runtime. A run with the
//! same seed gives the same figures on every machine.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Clock, MemoryStore};
use tower_quota_lease::{LeaseOptions, Leased};
use tower_quota_testkit::simulation::{self, Network, VirtualClock};

use super::cell::Sum;
use super::offer::Tally;
use super::path::{Answer, Contender, Path, StorePath};
use super::plan::{Plan, Traffic, quota};
use crate::load::Keys;
use crate::report::Report;
use crate::traffic;

/// The time of a message, as on loopback under load.
const DELAYS: core::ops::Range<Duration> = Duration::from_micros(50)..Duration::from_micros(500);
/// The time of a message between machines.
const FAR: core::ops::Range<Duration> = Duration::from_micros(200)..Duration::from_millis(2);

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    let loads: &[f64] = if quick { &[2.0] } else { &[0.5, 1.0, 2.0, 4.0] };
    for traffic in [Traffic::Even, Traffic::Zipf, Traffic::Bursts, Traffic::Hot] {
        for &load in loads {
            for nodes in [1, 2, 4, 8] {
                let plan = Plan {
                    traffic,
                    load,
                    nodes,
                    node: 0,
                    seconds: super::SECONDS,
                };
                for contender in Contender::OURS {
                    let case = format!("simulation/{}/{load}x/{nodes}", traffic.name());
                    report.row(
                        &case,
                        contender.name(),
                        simulation::run(cell(plan, *contender))?,
                    );
                }
            }
        }
    }
    for contender in Contender::OURS {
        let fleet = Fleet {
            nodes: 200,
            clients: if quick { 1_000_000 } else { 10_000_000 },
            seconds: 5,
            contender,
        };
        report.row(
            "simulation/fleet",
            contender.name(),
            simulation::run(fleet.run())?,
        );
    }
    Ok(report)
}

/// Runs a cell as the coordinator of real processes does.
async fn cell(
    plan: Plan,
    contender: Contender,
) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    let clock = VirtualClock::start();
    let server = Arc::new(MemoryStore::with_clock(10_000, clock.clone()));
    let mut nodes = JoinSet::new();
    let mut networks = Vec::new();
    for node in 0..plan.nodes {
        let network = Network::new(Arc::clone(&server), u64::from(node)).delays(DELAYS);
        networks.push(network.clone());
        let (plan, clock) = (Plan { node, ..plan }, clock.clone());
        match contender {
            Contender::Leased => {
                let store = Leased::with_clock(network, LeaseOptions::default(), clock.clone());
                nodes.spawn(offer(
                    StorePath::new(store, plan.traffic.quota()),
                    plan,
                    clock,
                ));
            }
            _ => drop(nodes.spawn(offer(
                StorePath::new(network, plan.traffic.quota()),
                plan,
                clock,
            ))),
        }
    }
    let mut tallies = Vec::new();
    while let Some(tally) = nodes.join_next().await {
        tallies.push(tally?);
    }
    let sum = Sum::of(&tallies, contender, &plan, 0);
    let mut figures = sum.admissions();
    let calls: u64 = networks.iter().map(Network::calls).sum();
    figures.push(("sent", calls as f64 / sum.asked.max(1) as f64));
    Ok(figures)
}

/// Offers the load of one instance.
async fn offer<P: Path>(path: P, plan: Plan, clock: VirtualClock) -> Tally {
    let began = clock.now();
    let mut clients = plan.clients();
    let mut tally = Tally::new(began.as_micros(), plan.traffic.clients());
    let mut waiting = JoinSet::new();
    for request in 0..plan.requests() {
        wait_until(plan.at(request), began, &clock).await;
        let client = clients.next();
        let decided = path.decide(client);
        waiting.spawn(async move { (client, decided.await) });
        while let Some(Ok((client, answer))) = waiting.try_join_next() {
            count(&mut tally, client, answer);
        }
    }
    while let Some(Ok((client, answer))) = waiting.join_next().await {
        count(&mut tally, client, answer);
    }
    tally.ended = clock.now().as_micros();
    path.close().await;
    tally
}

fn count(tally: &mut Tally, client: u32, answer: Answer) {
    let (asked, admitted) = &mut tally.clients[client as usize];
    *asked += 1;
    *admitted += u64::from(answer == Answer::Admitted);
    tally.failed += u64::from(answer == Answer::Failed);
}

/// Waits until the planned instant, as exactly as tokio's timer can: to the millisecond.
async fn wait_until(at: Duration, began: tower_quota_core::Timestamp, clock: &VirtualClock) {
    let left = at.saturating_sub(clock.now().since(began));
    if left >= Duration::from_millis(1) {
        simulation::pass(left).await;
    }
}

/// Many instances with many clients, that ask by Zipf's law.
struct Fleet<'a> {
    nodes: u32,
    clients: u32,
    seconds: u32,
    contender: &'a Contender,
}

impl Fleet<'_> {
    /// The requests per second of each instance.
    const RATE: u32 = 5_000;
    /// The units per second of each client. Some thirty of ten million ask for more.
    const UNITS: u32 = 2_000;

    async fn run(&self) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
        let clock = VirtualClock::start();
        let server = Arc::new(MemoryStore::with_clock(
            2 * self.clients as usize,
            clock.clone(),
        ));
        let trace = Arc::new(traffic::Traffic::Zipf(self.clients).trace(1));
        let mut nodes = JoinSet::new();
        let mut networks = Vec::new();
        for node in 0..self.nodes {
            let network = Network::new(Arc::clone(&server), u64::from(node)).delays(FAR);
            networks.push(network.clone());
            let (clock, trace) = (clock.clone(), Arc::clone(&trace));
            let plan = NodePlan {
                node,
                nodes: self.nodes,
                requests: Self::RATE * self.seconds,
            };
            match self.contender {
                Contender::Leased => {
                    let store = Leased::with_clock(network, LeaseOptions::default(), clock.clone());
                    nodes.spawn(plan.offer(
                        StorePath::new(store, quota(Self::UNITS)),
                        trace,
                        clock,
                    ));
                }
                _ => drop(nodes.spawn(plan.offer(
                    StorePath::new(network, quota(Self::UNITS)),
                    trace,
                    clock,
                ))),
            }
        }
        let (began, mut clients) = (clock.now(), vec![(0_u64, 0_u64); self.clients as usize]);
        while let Some(answers) = nodes.join_next().await {
            for (client, answer) in answers? {
                let (asked, admitted) = &mut clients[client as usize];
                *asked += 1;
                *admitted += u64::from(answer == Answer::Admitted);
            }
        }
        let most = self
            .contender
            .allowed(Self::UNITS, clock.now().since(began));
        let sum = |of: fn(&(u64, u64), u64) -> u64| {
            clients.iter().map(|client| of(client, most)).sum::<u64>() as f64
        };
        let (asked, admitted) = (
            sum(|(asked, _), _| *asked),
            sum(|(_, admitted), _| *admitted),
        );
        let allowed = sum(|(asked, _), most| (*asked).min(most));
        let calls: u64 = networks.iter().map(Network::calls).sum();
        Ok(vec![
            ("asked", asked),
            ("admitted", admitted),
            ("allowed", allowed),
            ("admitted %", admitted * 100.0 / allowed),
            (
                "over",
                sum(|(_, admitted), most| admitted.saturating_sub(most)),
            ),
            ("failed", 0.0),
            ("sent", calls as f64 / asked),
        ])
    }
}

/// The load of one instance of a fleet.
struct NodePlan {
    node: u32,
    nodes: u32,
    requests: u32,
}

impl NodePlan {
    async fn offer<P: Path>(
        self,
        path: P,
        trace: Arc<traffic::Trace>,
        clock: VirtualClock,
    ) -> Vec<(u32, Answer)> {
        let began = clock.now();
        let mut draws = Keys::new(u64::from(self.node) + 1, u64::MAX);
        let (mut waiting, mut answers) = (JoinSet::new(), Vec::new());
        for request in 0..self.requests {
            let turn = f64::from(self.node) / f64::from(self.nodes);
            let at = Duration::from_secs_f64((f64::from(request) + turn) / f64::from(Fleet::RATE));
            wait_until(at, began, &clock).await;
            let client = trace.at(draws.next());
            let decided = path.decide(client);
            waiting.spawn(async move { (client, decided.await) });
            while let Some(Ok(answer)) = waiting.try_join_next() {
                answers.push(answer);
            }
        }
        while let Some(Ok(answer)) = waiting.join_next().await {
            answers.push(answer);
        }
        path.close().await;
        answers
    }
}
