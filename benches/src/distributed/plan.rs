//! The offered load: which client asks at which instant.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tower_quota_core::Quota;

use crate::traffic;

/// The requests per second that the quotas of all clients allow together.
const RATE: u32 = 4_000;
/// The number of clients, unless one asks alone.
const CLIENTS: u32 = 20;
/// Bursts begin this far apart.
const BURST_EVERY: f64 = 0.5;
/// A burst has all requests until the next one in this share of the time.
const BURST_SHARE: f64 = 0.1;

/// The spread of requests over clients and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Traffic {
    /// Twenty clients, all alike, at equal distances.
    Even,
    /// Twenty clients; the n-th asks 1/n as often as the first.
    Zipf,
    /// Twenty clients, all alike, whose requests come in bursts of 50 ms.
    Bursts,
    /// One client.
    Hot,
}

/// The numbers of a plan. Every process of a cell has the same, but for its own.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Plan {
    pub(super) traffic: Traffic,
    /// The offered load, in multiples of what the quotas allow.
    pub(super) load: f64,
    /// The number of processes.
    pub(super) nodes: u32,
    /// The number of this process, from 0.
    pub(super) node: u32,
    pub(super) seconds: f64,
}

impl Traffic {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Zipf => "zipf",
            Self::Bursts => "bursts",
            Self::Hot => "hot",
        }
    }

    pub(super) const fn clients(self) -> u32 {
        if matches!(self, Self::Hot) {
            1
        } else {
            CLIENTS
        }
    }

    /// Returns the units that each client may use in a second, and at once.
    pub(super) const fn rate(self) -> u32 {
        RATE / self.clients()
    }

    /// Returns the quota of each client: a bucket of one second's units.
    pub(super) const fn quota(self) -> Quota {
        quota(self.rate())
    }

    const fn order(self) -> traffic::Traffic {
        match self {
            Self::Even | Self::Bursts => traffic::Traffic::Uniform(self.clients()),
            Self::Zipf => traffic::Traffic::Zipf(self.clients()),
            Self::Hot => traffic::Traffic::InTurn(1),
        }
    }
}

/// Returns a quota of this many units a second, with a burst of as many.
pub(super) const fn quota(rate: u32) -> Quota {
    // By the minute, as quotas of such a size are written: a lease lasts a hundredth of the period at most.
    Quota::per_minute(rate as u64 * 60).burst(rate as u64)
}

impl Plan {
    /// Returns the requests per second of this process.
    fn rate(&self) -> f64 {
        f64::from(RATE) * self.load / f64::from(self.nodes)
    }

    pub(super) fn requests(&self) -> u64 {
        (self.rate() * self.seconds) as u64
    }

    /// Returns the planned instant of a request, since the start.
    pub(super) fn at(&self, request: u64) -> Duration {
        // Processes take turns.
        let even = (request as f64 + f64::from(self.node) / f64::from(self.nodes)) / self.rate();
        Duration::from_secs_f64(match self.traffic {
            Traffic::Bursts => {
                let begin = (even / BURST_EVERY).floor() * BURST_EVERY;
                begin + (even - begin) * BURST_SHARE
            }
            _ => even,
        })
    }

    /// Returns the clients in the order of their requests.
    pub(super) fn clients(&self) -> traffic::Trace {
        self.traffic.order().trace(u64::from(self.node) + 1)
    }

    /// Returns the arguments by which another process gets this plan.
    pub(super) fn arguments(&self) -> [String; 5] {
        [
            self.traffic.name().to_owned(),
            self.load.to_string(),
            self.nodes.to_string(),
            self.node.to_string(),
            self.seconds.to_string(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Plan, Traffic};

    #[test]
    fn bursts_keep_the_mean_rate() {
        let plan = Plan {
            traffic: Traffic::Bursts,
            load: 2.0,
            nodes: 4,
            node: 1,
            seconds: 2.0,
        };
        let instants: Vec<_> = (0..plan.requests())
            .map(|request| plan.at(request))
            .collect();
        assert_eq!(instants.len(), 4_000);
        assert!(instants.is_sorted());
        assert!(instants.iter().all(|at| at.as_secs_f64() % 0.5 < 0.05));
        assert_eq!(
            instants
                .iter()
                .filter(|at| **at < Duration::from_secs(1))
                .count(),
            2_000
        );
    }
}
