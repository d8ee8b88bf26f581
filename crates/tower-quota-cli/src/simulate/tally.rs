use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value, json};
use tower_quota::{Decided, Key, Name, Outcome};
use tower_quota_rules::{Document, OverText, readable_key};

use super::outcome::ReplayOutcome;
use super::peak::Peak;
use crate::log::time;

/// The counts of a replay. Their size grows with the number of clients.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    #[serde(flatten)]
    outcomes: BTreeMap<ReplayOutcome, u64>,
    busiest_admitted_second: Peak,
    pub(super) limits: Vec<LimitTally>,
    #[serde(skip)]
    clients: HashMap<ClientId, ClientTally>,
    #[serde(skip)]
    positions: HashMap<Name, u32>,
    #[serde(skip)]
    last: Option<ReplayOutcome>,
    #[serde(skip)]
    seed: [u8; 16],
    #[serde(skip)]
    shows_keys: bool,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct LimitTally {
    name: String,
    shadow: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<OverText>,
    requests: u64,
    limited: u64,
    pub(super) clients: u64,
    pub(super) clients_hit: u64,
    peak_per_second: u64,
    #[serde(skip)]
    second: Peak,
    longest_retry_ms: u64,
    longest_wait_ms: u64,
}

type ClientId = (u32, u64);

#[derive(Debug, Default)]
struct ClientTally {
    requests: u32,
    limited: u32,
    /// The times of the first and the last refusal, in microseconds since 1970.
    refused: (u64, u64),
    text: Option<String>,
}

impl Tally {
    pub(super) fn new(seed: [u8; 16], shows_keys: bool) -> Self {
        Self {
            outcomes: ReplayOutcome::ALL.map(|outcome| (outcome, 0)).into(),
            seed,
            shows_keys,
            ..Self::default()
        }
    }

    /// Counts the outcome of a request, and returns whether the request is admitted.
    pub(super) fn finish(&mut self, micros: u64) -> bool {
        let outcome = self.last.take().unwrap_or_default();
        *self.outcomes.entry(outcome).or_default() += 1;
        let is_admitted = outcome.is_admitted();
        if is_admitted {
            self.busiest_admitted_second.count(micros);
        }
        is_admitted
    }

    pub(super) fn note(&mut self, decided: &Decided<'_>, micros: u64) {
        self.last = Some(ReplayOutcome::of(decided));
        let Some(decision) = decided.decision else {
            return;
        };
        for (status, (name, key)) in decision.statuses().iter().zip(decided.keys()) {
            debug_assert_eq!(status.name, name, "statuses and keys are in one order");
            let next = u32::try_from(self.limits.len()).unwrap_or(u32::MAX);
            let position = *self.positions.entry(name).or_insert(next);
            if position == next {
                self.limits.push(LimitTally {
                    name: name.to_string(),
                    ..LimitTally::default()
                });
            }
            let limit = &mut self.limits[position as usize];
            limit.requests += 1;
            limit.peak_per_second = limit.second.count(micros);
            let id = (position, hash(key, &self.seed));
            let client = self.clients.entry(id).or_default();
            limit.clients += u64::from(client.requests == 0);
            client.requests = client.requests.saturating_add(1);
            match status.outcome {
                Outcome::Wait(wait) => {
                    limit.longest_wait_ms = limit.longest_wait_ms.max(millis(wait));
                }
                Outcome::Refuse(retry) => {
                    limit.longest_retry_ms = limit.longest_retry_ms.max(millis(retry));
                }
                _ => {}
            }
            if !status.outcome.is_refusal() {
                continue;
            }
            limit.limited += 1;
            if client.limited == 0 {
                limit.clients_hit += 1;
                client.refused.0 = micros;
                let text = || match key.as_bytes() {
                    [] => key.scope().to_string(),
                    _ => readable_key(key),
                };
                client.text = self.shows_keys.then(text);
            }
            client.limited = client.limited.saturating_add(1);
            client.refused.1 = micros;
        }
    }

    /// Notes what the limits of the document do to requests over their quotas.
    pub(super) fn describe_limits(&mut self, document: &Document) {
        for limit in &mut self.limits {
            let mut rules = document.all_limits();
            if let Some(rule) = rules.find(|rule| rule.name.as_str() == limit.name) {
                (limit.shadow, limit.over) = (rule.shadow, rule.over);
            }
        }
    }

    pub(super) fn most_limited(&self, most: usize) -> Vec<Value> {
        let mut limited: Vec<_> = self.limited().collect();
        limited.sort_unstable_by_key(|(id, client)| (Reverse(client.limited), **id));
        limited.truncate(most);
        let report = |((limit, hash), client): (&ClientId, &ClientTally)| {
            let hash = || format!("{hash:016x}");
            json!({
                "client": client.text.clone().unwrap_or_else(hash),
                "limit": self.limits[*limit as usize].name,
                "requests": client.requests,
                "limited": client.limited,
                "first": time::text(client.refused.0),
                "last": time::text(client.refused.1),
            })
        };
        limited.into_iter().map(report).collect()
    }

    pub(super) fn hit(&self) -> HashSet<(&str, u64)> {
        let name = |limit: u32| self.limits[limit as usize].name.as_str();
        self.limited()
            .map(|((limit, hash), _)| (name(*limit), *hash))
            .collect()
    }

    fn limited(&self) -> impl Iterator<Item = (&ClientId, &ClientTally)> {
        self.clients.iter().filter(|(_, client)| client.limited > 0)
    }
}

/// Returns a hash that hides the key. Services with this seed show the same hash.
fn hash(key: &Key<'_>, seed: &[u8; 16]) -> u64 {
    u64::try_from(key.digest(seed) >> 64).unwrap_or_default()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
