//! Counts of how the outcomes of a candidate differ.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use serde::{Deserialize, Serialize};
use tower_quota::key::KeyExtractor;
use tower_quota::{Decided, Policy};

use super::Rollout;
use super::chosen::{client_key, is_chosen};
use crate::live::follow::InForce;

/// Counts the outcomes of a candidate and of the document in force, by a listener of the layer.
///
/// The counts are those of one instance.
///
/// Make it before the layer, and give it to both:
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
/// use tower_quota_rules::live::{LiveOptions, RolloutCounts};
///
/// let counts = RolloutCounts::new();
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_decision(counts.listener());
/// let options = LiveOptions::new().rollout_counts(counts);
/// # let _ = (layer, options);
/// ```
///
/// While no roll-out is under way, the listener costs a request one load.
#[derive(Clone, Default)]
pub struct RolloutCounts {
    running: Arc<ArcSwapOption<Running>>,
}

/// The counts of one roll-out.
struct Running {
    number: u64,
    rollout: Rollout,
    /// The key by which clients are chosen for a percentage.
    key: Option<Arc<dyn KeyExtractor>>,
    counts: Mutex<RolloutReport>,
}

/// The outcomes of a roll-out on one instance, since it began there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RolloutReport {
    /// The number of the candidate's version.
    pub candidate: u64,
    /// Requests that the document in force decided.
    pub current_requests: u64,
    /// Those of them that it refused.
    pub current_refused: u64,
    /// Requests that the candidate decided, or in a dry run would have decided.
    pub candidate_requests: u64,
    /// Those of them that it refused, or would have refused.
    pub candidate_refused: u64,
    /// Dry runs: requests that were admitted, and that the candidate would have refused.
    pub only_candidate_refuses: u64,
    /// Dry runs: requests that were refused, and that the candidate would have admitted.
    pub only_current_refuses: u64,
    /// The same for each limit, by its name. A limit of one document only has counts of that one.
    pub limits: BTreeMap<String, LimitCounts>,
}

/// The outcomes of one limit in a roll-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct LimitCounts {
    /// Requests that the limit refused in the document in force.
    pub current_refused: u64,
    /// Requests that the limit refused, or would have refused, in the candidate.
    pub candidate_refused: u64,
    /// Dry runs: requests that the limit refuses in the candidate, and does not in the document in force.
    pub only_candidate_refuses: u64,
    /// Dry runs: requests that the limit refuses in the document in force, and does not in the candidate.
    pub only_current_refuses: u64,
}

impl RolloutReport {
    /// The limits of a report that instances share: those with the most refusals.
    const MOST_SHARED_LIMITS: usize = 1_000;

    /// Returns whether any request was counted.
    pub(crate) const fn has_requests(&self) -> bool {
        self.current_requests > 0 || self.candidate_requests > 0
    }

    /// Leaves out the limits with the fewest refusals, if there are too many to share.
    pub(crate) fn bounded(mut self) -> Self {
        if self.limits.len() > Self::MOST_SHARED_LIMITS {
            let mut limits: Vec<(String, LimitCounts)> =
                core::mem::take(&mut self.limits).into_iter().collect();
            limits.sort_by_key(|(_, counts)| {
                core::cmp::Reverse(counts.current_refused.max(counts.candidate_refused))
            });
            limits.truncate(Self::MOST_SHARED_LIMITS);
            self.limits = limits.into_iter().collect();
        }
        self
    }

    /// Adds the counts of another instance.
    pub(crate) fn add(&mut self, other: &Self) {
        self.current_requests += other.current_requests;
        self.current_refused += other.current_refused;
        self.candidate_requests += other.candidate_requests;
        self.candidate_refused += other.candidate_refused;
        self.only_candidate_refuses += other.only_candidate_refuses;
        self.only_current_refuses += other.only_current_refuses;
        for (name, added) in &other.limits {
            let counts = counts_of(&mut self.limits, name);
            counts.current_refused += added.current_refused;
            counts.candidate_refused += added.candidate_refused;
            counts.only_candidate_refuses += added.only_candidate_refuses;
            counts.only_current_refuses += added.only_current_refuses;
        }
    }
}

impl RolloutCounts {
    /// Makes counts without a roll-out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the listener for [`RateLimitLayer::on_decision`](tower_quota::RateLimitLayer::on_decision).
    pub fn listener(&self) -> impl Fn(&Decided<'_>) + Send + Sync + 'static {
        let running = Arc::clone(&self.running);
        move |decided| {
            if let Some(running) = &*running.load() {
                running.note(decided);
            }
        }
    }

    /// Returns the counts of the roll-out under way.
    #[must_use]
    pub fn report(&self) -> Option<RolloutReport> {
        self.running.load().as_ref().map(|running| {
            running
                .counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        })
    }

    /// Counts for the candidate of these documents from now on.
    pub(crate) fn follow(&self, in_force: &InForce, policy: &Policy) {
        let Some((candidate, ..)) = &in_force.candidate else {
            self.running.store(None);
            return;
        };
        let is_same = |running: &Arc<Running>| {
            (running.number, running.rollout) == (candidate.number, candidate.rollout)
        };
        if self.running.load().as_ref().is_some_and(is_same) {
            return;
        }
        let (number, rollout, key) = (candidate.number, candidate.rollout, client_key(policy));
        let counts = Mutex::new(RolloutReport {
            candidate: number,
            ..RolloutReport::default()
        });
        self.running.store(Some(Arc::new(Running {
            number,
            rollout,
            key,
            counts,
        })));
    }
}

impl Running {
    fn note(&self, decided: &Decided<'_>) {
        // Without a decision no limit was asked, in either document.
        let Some(decision) = decided.decision() else {
            return;
        };
        let mut report = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let report = &mut *report;
        let is_refused = decided.reason().is_some();
        match self.rollout {
            Rollout::Percent(percent) => {
                let head = decided.head();
                let is_chosen = self
                    .key
                    .as_ref()
                    .is_some_and(|key| is_chosen(&**key, &head, percent));
                let (requests, refused) = if is_chosen {
                    (
                        &mut report.candidate_requests,
                        &mut report.candidate_refused,
                    )
                } else {
                    (&mut report.current_requests, &mut report.current_refused)
                };
                *requests += 1;
                *refused += u64::from(is_refused);
                for limit in decided.refusing_limits() {
                    let counts = counts_of(&mut report.limits, limit.as_str());
                    *(if is_chosen {
                        &mut counts.candidate_refused
                    } else {
                        &mut counts.current_refused
                    }) += 1;
                }
            }
            Rollout::DryRun => {
                let mut would_refuse = false;
                for status in decision.statuses() {
                    let name = status.name.as_str();
                    let Some(name) = name.strip_prefix(Policy::DRY_RUN_PREFIX) else {
                        // A limit that is not in the candidate refuses in the document in force alone.
                        if status.outcome.is_refusal() && !status.is_shadow {
                            let is_same = decision.statuses().iter().any(|other| {
                                other.outcome.is_refusal()
                                    && of_candidate(other.name.as_str(), name)
                            });
                            let counts = counts_of(&mut report.limits, name);
                            counts.current_refused += 1;
                            counts.only_current_refuses += u64::from(!is_same);
                        }
                        continue;
                    };
                    if status.outcome.is_refusal() {
                        would_refuse = true;
                        let is_same = decision
                            .enforced()
                            .any(|other| other.outcome.is_refusal() && other.name.as_str() == name);
                        let counts = counts_of(&mut report.limits, name);
                        counts.candidate_refused += 1;
                        counts.only_candidate_refuses += u64::from(!is_same);
                    }
                }
                report.current_requests += 1;
                report.candidate_requests += 1;
                report.current_refused += u64::from(is_refused);
                report.candidate_refused += u64::from(would_refuse);
                report.only_candidate_refuses += u64::from(would_refuse && !is_refused);
                report.only_current_refuses += u64::from(is_refused && !would_refuse);
            }
        }
    }
}

fn of_candidate(name: &str, limit: &str) -> bool {
    name.strip_prefix(Policy::DRY_RUN_PREFIX) == Some(limit)
}

fn counts_of<'a>(limits: &'a mut BTreeMap<String, LimitCounts>, name: &str) -> &'a mut LimitCounts {
    limits.entry(name.to_owned()).or_default()
}

impl fmt::Debug for RolloutCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RolloutCounts")
            .field(&self.report())
            .finish()
    }
}
