//! The counts of a replay.

use core::time::Duration;
use std::collections::HashMap;

use tower_quota::{Decided, Key, Name};

use super::outcome::ReplayOutcome;
use super::peak::Peak;
use super::series::Series;

/// The counts of one document over a log. Its size grows with the number of clients, not of lines.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) limits: Vec<LimitTally>,
    pub(crate) clients: HashMap<ClientId, ClientTally>,
    pub(crate) series: Series,
    pub(crate) busiest_second: Peak,
    counts: [u64; ReplayOutcome::ALL.len()],
    positions: HashMap<Name, u32>,
    /// The outcome of the request that was decided last.
    last: Option<ReplayOutcome>,
    keys: KeyNames,
}

/// The counts of one limit.
#[derive(Debug)]
pub(crate) struct LimitTally {
    pub(crate) name: Name,
    /// The requests that the limit was asked for.
    pub(crate) asked: u64,
    /// The requests that it refused. Those of a shadow limit were admitted all the same.
    pub(crate) refused: u64,
    pub(crate) is_shadow: bool,
    pub(crate) busiest_second: Peak,
    pub(crate) longest_retry: Duration,
    pub(crate) longest_wait: Duration,
}

/// A client of a limit: the limit's position, and a hash of the key.
pub(crate) type ClientId = (u32, u64);

/// The counts of one client of one limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTally {
    pub(crate) asked: u32,
    pub(crate) refused: u32,
    /// The time of the first refusal, in microseconds since 1970.
    pub(crate) first_refused: u64,
    /// The time of the last refusal, in microseconds since 1970.
    pub(crate) last_refused: u64,
    /// The key as text, if keys are shown.
    pub(crate) text: Option<Box<str>>,
}

/// The names of clients: a hash with a seed of this run, and the keys if the user asks for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyNames {
    pub(crate) seed: [u8; 16],
    pub(crate) show: bool,
}

impl Tally {
    pub(super) fn new(keys: KeyNames) -> Self {
        Self {
            limits: Vec::new(),
            clients: HashMap::new(),
            series: Series::default(),
            busiest_second: Peak::over(Peak::SECOND),
            counts: [0; ReplayOutcome::ALL.len()],
            positions: HashMap::new(),
            last: None,
            keys,
        }
    }

    /// Returns the number of requests with this outcome.
    pub(crate) const fn count(&self, outcome: ReplayOutcome) -> u64 {
        self.counts[outcome as usize]
    }

    /// Returns the outcome of the last request, and counts it.
    pub(super) fn finish(&mut self, micros: u64) -> ReplayOutcome {
        let outcome = self.last.take().unwrap_or_default();
        self.counts[outcome as usize] += 1;
        self.series.count(micros, outcome.is_admitted());
        if outcome.is_admitted() {
            self.busiest_second.count(micros);
        }
        outcome
    }

    /// Notes a decision of the layer.
    pub(super) fn note(&mut self, decided: &Decided<'_>, micros: u64) {
        self.last = Some(ReplayOutcome::of(decided));
        let Some(decision) = decided.decision() else {
            return;
        };
        for (status, (name, key)) in decision.statuses().iter().zip(decided.keys()) {
            debug_assert_eq!(status.name, name, "statuses and keys are in one order");
            let position = self.position(name, status.is_shadow);
            let limit = &mut self.limits[position as usize];
            limit.asked += 1;
            limit.busiest_second.count(micros);
            if let tower_quota::Outcome::Wait(wait) = status.outcome {
                limit.longest_wait = limit.longest_wait.max(wait);
            }
            let client = self
                .clients
                .entry((position, hash(key, &self.keys.seed)))
                .or_default();
            client.asked = client.asked.saturating_add(1);
            if status.outcome.is_refusal() {
                limit.refused += 1;
                if let tower_quota::Outcome::Refuse(retry) = status.outcome {
                    limit.longest_retry = limit.longest_retry.max(retry);
                }
                if client.refused == 0 {
                    client.first_refused = micros;
                    client.text = self.keys.show.then(|| text(key).into());
                }
                client.refused = client.refused.saturating_add(1);
                client.last_refused = micros;
            }
        }
    }

    fn position(&mut self, name: Name, is_shadow: bool) -> u32 {
        // Few policies ask a request for more limits than a look through the first ones finds.
        if let Some(at) = self
            .limits
            .iter()
            .take(4)
            .position(|limit| limit.name == name)
        {
            return u32::try_from(at).unwrap_or_default();
        }
        let next = u32::try_from(self.limits.len()).unwrap_or(u32::MAX);
        let position = *self.positions.entry(name).or_insert(next);
        if position == next {
            let second = Peak::over(Peak::SECOND);
            let (longest_retry, longest_wait) = (Duration::ZERO, Duration::ZERO);
            self.limits.push(LimitTally {
                name,
                asked: 0,
                refused: 0,
                is_shadow,
                busiest_second: second,
                longest_retry,
                longest_wait,
            });
        }
        position
    }
}

/// Returns a hash of a key that does not tell the key.
pub(super) fn hash(key: &Key<'_>, seed: &[u8; 16]) -> u64 {
    // Half of it is enough to tell millions of clients apart.
    (key.digest(seed) & u128::from(u64::MAX))
        .try_into()
        .unwrap_or_default()
}

/// Returns a key as people know it.
fn text(key: &Key<'_>) -> String {
    let (scope, bytes) = (key.scope().as_str(), key.as_bytes());
    if let Some(address) = key.to_address() {
        return address.to_string();
    }
    match bytes {
        [] => scope.to_owned(),
        _ => String::from_utf8_lossy(bytes).escape_debug().to_string(),
    }
}
