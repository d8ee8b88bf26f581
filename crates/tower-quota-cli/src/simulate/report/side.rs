//! The report of one document.

use core::time::Duration;
use std::collections::HashMap;

use serde::Serialize;

use super::{HitChange, PeakReport};
use crate::log::time;
use crate::simulate::outcome::ReplayOutcome;
use crate::simulate::share::Share;
use crate::simulate::tally::{ClientTally, Tally};

/// The result of one document.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SideReport {
    pub(crate) uncounted: u64,
    pub(crate) admitted: u64,
    pub(crate) queued: u64,
    pub(crate) limited: u64,
    pub(crate) blocked: u64,
    pub(crate) missing_key: u64,
    pub(crate) busiest_admitted_second: Option<PeakReport>,
    pub(crate) limits: Vec<LimitReport>,
    /// The clients that are refused most.
    pub(crate) clients: Vec<LimitedClient>,
}

/// The result of one limit.
#[derive(Debug, Serialize)]
pub(crate) struct LimitReport {
    pub(crate) name: String,
    /// True if the limit refuses nothing: it would have.
    pub(crate) shadow: bool,
    pub(crate) requests: u64,
    pub(crate) limited: u64,
    pub(crate) clients: u64,
    /// The clients that are refused at least once.
    pub(crate) clients_hit: u64,
    /// The same as a share of the clients, in millionths.
    pub(crate) clients_hit_millionths: u64,
    pub(crate) busiest_second: PeakReport,
    /// The longest time after which a refused request would have been admitted, in seconds, rounded up.
    pub(crate) longest_retry_seconds: u64,
    /// The longest wait of a queued request, in milliseconds.
    pub(crate) longest_wait_millis: u64,
}

/// A client that a limit refuses.
#[derive(Debug, Serialize)]
pub(crate) struct LimitedClient {
    pub(crate) limit: String,
    /// The key, or its hash.
    pub(crate) client: String,
    pub(crate) requests: u32,
    pub(crate) limited: u32,
    pub(crate) first: String,
    pub(crate) last: String,
}

impl SideReport {
    pub(super) fn of(tally: &Tally, top: usize) -> Self {
        let (at, requests) = tally.busiest_second.most();
        Self {
            uncounted: tally.count(ReplayOutcome::Uncounted),
            admitted: tally.count(ReplayOutcome::Admitted),
            queued: tally.count(ReplayOutcome::Queued),
            limited: tally.count(ReplayOutcome::Limited),
            blocked: tally.count(ReplayOutcome::Blocked),
            missing_key: tally.count(ReplayOutcome::MissingKey),
            busiest_admitted_second: (requests > 0).then(|| PeakReport {
                requests,
                at: time::text(at),
            }),
            limits: limits(tally),
            clients: clients(tally, top),
        }
    }
}

fn limits(tally: &Tally) -> Vec<LimitReport> {
    let mut clients = vec![(0, 0); tally.limits.len()];
    for ((limit, _), client) in &tally.clients {
        let (all, hit) = &mut clients[*limit as usize];
        *all += 1;
        *hit += u64::from(client.refused > 0);
    }
    let report =
        |(limit, (clients, clients_hit)): (&crate::simulate::tally::LimitTally, (u64, u64))| {
            let (at, requests) = limit.busiest_second.most();
            LimitReport {
                name: limit.name.as_str().to_owned(),
                shadow: limit.is_shadow,
                requests: limit.asked,
                limited: limit.refused,
                clients,
                clients_hit,
                clients_hit_millionths: Share::of(clients_hit, clients).millionths(),
                busiest_second: PeakReport {
                    requests,
                    at: time::text(at),
                },
                longest_retry_seconds: seconds(limit.longest_retry),
                longest_wait_millis: u64::try_from(limit.longest_wait.as_millis())
                    .unwrap_or(u64::MAX),
            }
        };
    tally.limits.iter().zip(clients).map(report).collect()
}

fn clients(tally: &Tally, top: usize) -> Vec<LimitedClient> {
    let mut limited: Vec<(&(u32, u64), &ClientTally)> = tally
        .clients
        .iter()
        .filter(|(_, client)| client.refused > 0)
        .collect();
    limited.sort_unstable_by_key(|(id, client)| (core::cmp::Reverse(client.refused), **id));
    let report = |((limit, hash), client): (&(u32, u64), &ClientTally)| LimitedClient {
        limit: tally.limits[*limit as usize].name.as_str().to_owned(),
        client: client
            .text
            .as_ref()
            .map_or_else(|| format!("#{hash:016x}"), ToString::to_string),
        requests: client.asked,
        limited: client.refused,
        first: time::text(client.first_refused),
        last: time::text(client.last_refused),
    };
    limited.into_iter().take(top).map(report).collect()
}

/// Returns the clients of each limit that are refused by one document alone. Limits are the same by name.
pub(super) fn hit_changes(new: &Tally, old: &Tally) -> Vec<HitChange> {
    let positions = |tally: &Tally| -> HashMap<String, u32> {
        (0..)
            .zip(&tally.limits)
            .map(|(at, limit)| (limit.name.as_str().to_owned(), at))
            .collect()
    };
    let (in_new, in_old) = (positions(new), positions(old));
    let only = |one: &Tally, other: &Tally, at: Option<&u32>, at_other: Option<&u32>| {
        let Some(at) = at else { return 0 };
        let hit = one
            .clients
            .iter()
            .filter(|((limit, _), client)| limit == at && client.refused > 0);
        let is_hit = |key| {
            at_other
                .and_then(|at| other.clients.get(&(*at, key)))
                .is_some_and(|client| client.refused > 0)
        };
        hit.filter(|((_, key), _)| !is_hit(*key)).count() as u64
    };
    let mut names: Vec<&String> = in_new
        .keys()
        .chain(in_old.keys().filter(|name| !in_new.contains_key(*name)))
        .collect();
    names.sort_unstable();
    let change = |name: &String| {
        let (at_new, at_old) = (in_new.get(name), in_old.get(name));
        let (newly_hit, no_longer_hit) = (
            only(new, old, at_new, at_old),
            only(old, new, at_old, at_new),
        );
        HitChange {
            limit: name.clone(),
            newly_hit,
            no_longer_hit,
        }
    };
    names
        .into_iter()
        .map(change)
        .filter(|change| change.newly_hit + change.no_longer_hit > 0)
        .collect()
}

fn seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}
