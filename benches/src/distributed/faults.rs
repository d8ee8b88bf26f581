//! Faults in the middle of a cell: admitted over allowed, and the units that were charged and lost.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use tower_quota_testkit::{Fault as Network, FaultProxy, RedisServer};

use super::cell::{self, Running, Sum};
use super::path::Contender;
use super::plan::{Plan, Traffic};
use crate::report::Report;
use crate::timing::rest;

/// The process that a fault concerns.
const VICTIM: usize = 0;
/// The fault begins so long after the start.
const BEFORE: Duration = Duration::from_millis(1_500);
/// The length of a fault, unless it is the end of a process or of Redis.
const DURING: Duration = Duration::from_secs(2);
/// The time without Redis: short, so that requests without an answer do not hide units admitted twice.
const RESTART: Duration = Duration::from_millis(200);
/// The default deadline of the Redis store: with it a fault shows as it would in production.
const DEADLINE_MS: u64 = 50;
const PLAN: Plan = Plan {
    traffic: Traffic::Hot,
    load: 2.0,
    nodes: 4,
    node: 0,
    seconds: 5.0,
};

/// A fault in the middle of a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None, for comparison.
    None,
    /// A process is killed (SIGKILL).
    Killed,
    /// A process is stopped and continued (SIGSTOP, SIGCONT). It then sends at once what it should have sent.
    Paused,
    /// Redis is killed, and started empty.
    RedisRestarted,
    /// The calls of a process arrive, and no answer comes back.
    AnswersCut,
}

impl Fault {
    const ALL: [Self; 5] = [
        Self::None,
        Self::Killed,
        Self::Paused,
        Self::RedisRestarted,
        Self::AnswersCut,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Killed => "process-killed",
            Self::Paused => "process-paused",
            Self::RedisRestarted => "redis-restarted-empty",
            Self::AnswersCut => "answers-cut",
        }
    }
}

/// Reports every fault for every contender that is ours.
pub(super) fn measure(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    for fault in Fault::ALL {
        for &contender in Contender::OURS {
            let figures = runtime.block_on(one(contender, fault))?;
            report.row(
                &format!("distributed/fault/{}", fault.name()),
                contender.name(),
                figures,
            );
        }
    }
    Ok(())
}

async fn one(
    contender: Contender,
    fault: Fault,
) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    let mut server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let url = |node: u32| {
        if node as usize == VICTIM {
            proxy.url()
        } else {
            server.url()
        }
    };
    let mut nodes = cell::start(contender, PLAN, DEADLINE_MS, url, true)?;
    cell::go(&mut nodes)?;
    rest(BEFORE).await;
    match fault {
        Fault::None => {}
        Fault::Killed => nodes[VICTIM].kill()?,
        Fault::Paused => {
            signal(&nodes[VICTIM], "STOP")?;
            rest(DURING).await;
            signal(&nodes[VICTIM], "CONT")?;
        }
        Fault::RedisRestarted => {
            server.kill();
            rest(RESTART).await;
            server.start_again();
        }
        Fault::AnswersCut => {
            proxy.inflict(Network::Mute);
            rest(DURING).await;
            proxy.heal();
        }
    }
    let (mut tallies, mut killed) = (Vec::new(), 0);
    for node in nodes {
        match node.tally()? {
            (_, Some(tally)) => tallies.push(tally),
            (written, None) => killed += written,
        }
    }
    let sum = Sum::of(&tallies, contender, &PLAN, killed);
    let mut figures = sum.admissions();
    figures.push(("units lost", sum.lost as f64));
    Ok(figures)
}

fn signal(node: &Running, name: &str) -> Result<(), Box<dyn Error>> {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &node.id().to_string()])
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("kill -{name} failed: {status}").into())
    }
}
