//! The counters and histograms of one policy.

use core::fmt;
use core::hash::BuildHasherDefault;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use ::metrics::{Counter, Histogram, counter, histogram};
use thread_local::ThreadLocal;
use tower_quota_core::{Decision, LimitStatus, Name, Outcome};

use super::latency::Latency;
use super::outcome::{DegradedChoice, LimitOutcome, RequestOutcome, StoreFailureKind};
use super::routes::{NUMBERS, OTHER, Routes};
use super::stopwatch::Stopwatch;
use super::threads::{Row, ThreadCounts};
use super::{MAX_CELLS, MAX_HISTOGRAMS, MAX_LIMITS, table};
use crate::decided::Decided;
use crate::head::RequestHead;
use crate::id_hasher::IdHasher;
use crate::limit::Limit;

/// The label of what has none of its own.
const OTHER_LABEL: &str = "other";

/// The counters and histograms of one policy. The next policy has others, which continue the same series.
pub(crate) struct PolicyMetrics {
    /// The names of the limits, in the order of the policy.
    pub(super) limits: Box<[Name]>,
    /// The number of limits that are counted one by one, and one more if there are others.
    places: usize,
    /// The number of statuses of a decision by all limits. It is unreachable if a limit is a shadow, whose answer the
    /// outcome of the decision does not tell.
    all: usize,
    /// The position of each limit, by the number of its name, which is unique in a policy.
    positions: HashMap<u32, usize, BuildHasherDefault<IdHasher>>,
    routes: Routes,
    pub(super) threads: ThreadLocal<ThreadCounts>,
    degraded: [AtomicU64; DegradedChoice::LABELS.len()],
    failures: [AtomicU64; StoreFailureKind::LABELS.len()],
    decision_duration: OnceLock<Histogram>,
    store_duration: OnceLock<Histogram>,
    pub(super) latency: Latency,
    retry_after: Box<[OnceLock<Histogram>]>,
    remaining: Box<[OnceLock<Histogram>]>,
    published: Mutex<Published>,
}

/// The counters of the recorder, each with the part of its sum that this policy has added.
#[derive(Default)]
struct Published {
    cells: HashMap<Cell, (Counter, u64)>,
    degraded: [(Option<Counter>, u64); DegradedChoice::LABELS.len()],
    failures: [(Option<Counter>, u64); StoreFailureKind::LABELS.len()],
}

/// A place in the counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Cell {
    route: usize,
    /// The position of the limit; none for requests.
    limit: Option<usize>,
    outcome: usize,
}

impl PolicyMetrics {
    pub(crate) fn new<'p>(limits: impl Iterator<Item = &'p Limit> + Clone) -> Self {
        let has_shadows = limits.clone().any(Limit::is_shadow);
        let limits: Box<[Name]> = limits.map(|limit| limit.name).collect();
        let positions = limits
            .iter()
            .enumerate()
            .map(|(position, limit)| (limit.id(), position))
            .collect();
        let histograms = || {
            (0..limits.len().min(MAX_HISTOGRAMS + 1))
                .map(|_| OnceLock::new())
                .collect()
        };
        let (retry_after, remaining) = (histograms(), histograms());
        Self {
            places: limits.len().min(MAX_LIMITS + 1),
            all: if has_shadows {
                usize::MAX
            } else {
                limits.len()
            },
            limits,
            positions,
            routes: Routes::new(),
            threads: ThreadLocal::new(),
            degraded: Default::default(),
            failures: Default::default(),
            decision_duration: OnceLock::new(),
            store_duration: OnceLock::new(),
            latency: Latency::new(),
            retry_after,
            remaining,
            published: Mutex::default(),
        }
    }

    /// Starts to time a sample of the decisions that need no wait.
    #[inline]
    pub(crate) fn sample(&self) -> Stopwatch {
        Stopwatch::sample()
    }

    /// Records the duration and the remaining units of a decision without a wait, if it is in the sample.
    #[inline]
    pub(crate) fn decided_at_once(&self, watch: Stopwatch, decision: &Decision) {
        if watch.is_running() {
            self.record_sample(watch, decision);
        }
    }

    #[cold]
    fn record_sample(&self, watch: Stopwatch, decision: &Decision) {
        record(
            &self.decision_duration,
            || histogram!(table::DECISION_DURATION),
            watch.seconds(),
        );
        self.record_remaining(decision);
    }

    /// Records the duration of a call of the store; `decision` is none if it failed.
    pub(crate) fn answered(&self, watch: Stopwatch, decision: Option<&Decision>) {
        self.latency.record(watch.elapsed());
        let seconds = watch.seconds();
        record(
            &self.store_duration,
            || histogram!(table::STORE_DURATION),
            seconds,
        );
        let Some(decision) = decision else { return };
        record(
            &self.decision_duration,
            || histogram!(table::DECISION_DURATION),
            seconds,
        );
        if Stopwatch::sample().is_running() {
            self.record_remaining(decision);
        }
    }

    fn record_remaining(&self, decision: &Decision) {
        for status in decision.statuses() {
            self.record_limit(
                &self.remaining,
                table::REMAINING,
                status.name,
                share_left(status),
            );
        }
    }

    fn record_limit(
        &self,
        histograms: &[OnceLock<Histogram>],
        name: &'static str,
        limit: Name,
        value: f64,
    ) {
        let Some(position) = self.position(limit, 0) else {
            return;
        };
        let (position, label) = if position < MAX_HISTOGRAMS {
            (position, limit.as_str())
        } else {
            (MAX_HISTOGRAMS, OTHER_LABEL)
        };
        if let Some(histogram) = histograms.get(position) {
            record(histogram, || histogram!(name, "limit" => label), value);
        }
    }

    /// Counts a request that its limits admit.
    #[inline]
    pub(crate) fn admitted(&self, head: &RequestHead<'_>, decision: &Decision) {
        if decision.outcome() == Outcome::Allow && decision.statuses().len() == self.all {
            // One counter stands for the request and all its limits.
            let route = self.routes.number_of(head.extensions());
            self.threads.get_or(ThreadCounts::new).all_allowed[route].add_one();
        } else {
            self.admitted_otherwise(head, decision);
        }
    }

    /// Counts an admitted request of which some limits are not asked, or make it wait, or are shadows.
    #[inline(never)]
    fn admitted_otherwise(&self, head: &RequestHead<'_>, decision: &Decision) {
        self.count_each(&Decided {
            head: *head,
            decision: Some(decision),
            reason: None,
            degraded: false,
            keys: &[],
        });
    }

    /// Counts a decided request.
    #[inline]
    pub(crate) fn count(&self, decided: &Decided<'_>) {
        match (decided.decision, decided.reason) {
            (Some(decision), None) if !decided.degraded => self.admitted(&decided.head, decision),
            _ => self.count_each(decided),
        }
    }

    #[inline(never)]
    fn count_each(&self, decided: &Decided<'_>) {
        let (row, limits) = self.rows(&decided.head);
        row.requests[RequestOutcome::of(decided) as usize].add_one();
        if let Some(decision) = decided.decision {
            for (at, status) in decision.statuses().iter().enumerate() {
                self.count_limit(limits, status.name, at, LimitOutcome::of(status));
            }
            if decided.reason.is_some() {
                self.record_retry(decision);
            }
        }
        // Limits without an answer of their own let the request through uncounted, unless another refuses it.
        if decided.degraded && decided.reason.is_none() {
            let statuses = decided.decision.map_or(&[][..], Decision::statuses);
            for (at, (limit, _)) in decided.keys.iter().enumerate() {
                if !statuses.iter().any(|status| status.name == *limit) {
                    self.count_limit(limits, *limit, at, LimitOutcome::Degraded);
                }
            }
        }
    }

    #[cold]
    fn record_retry(&self, decision: &Decision) {
        if let (Some(retry), Some(status)) = (decision.retry_after(), decision.tightest()) {
            self.record_limit(
                &self.retry_after,
                table::RETRY_AFTER,
                status.name,
                retry.as_secs_f64(),
            );
        }
    }

    /// Counts a request that no limit counts.
    pub(crate) fn skipped(&self, head: &RequestHead<'_>) {
        self.rows(head).0.requests[RequestOutcome::Skipped as usize].add_one();
    }

    /// Counts a failure of the store.
    pub(crate) fn store_failed(&self, kind: StoreFailureKind) {
        self.failures[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that is decided without the store.
    pub(crate) fn degraded(&self, choice: DegradedChoice) {
        self.degraded[choice as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns this thread's counters for the route of a request, and those for its limits.
    fn rows(&self, head: &RequestHead<'_>) -> (&Row, &Row) {
        let route = self.routes.number_of(head.extensions());
        (
            self.row(route),
            self.row(if self.has_details(route) {
                route
            } else {
                OTHER
            }),
        )
    }

    /// Returns this thread's counters for a route.
    fn row(&self, route: usize) -> &Row {
        let limits = if self.has_details(route) {
            self.places
        } else {
            0
        };
        self.threads.get_or(ThreadCounts::new).row(route, limits)
    }

    /// Returns whether the limits are counted one by one on a route.
    const fn has_details(&self, route: usize) -> bool {
        route == OTHER || route * self.places < MAX_CELLS
    }

    #[inline]
    fn count_limit(&self, row: &Row, limit: Name, guess: usize, outcome: LimitOutcome) {
        if let Some(position) = self.position(limit, guess)
            && let Some(counters) = row.limits.get(position.min(MAX_LIMITS))
        {
            counters[outcome as usize].add_one();
        }
    }

    /// Returns the position of a limit in the policy, which may be the guess.
    #[inline]
    fn position(&self, limit: Name, guess: usize) -> Option<usize> {
        if self
            .limits
            .get(guess)
            .is_some_and(|guessed| guessed.id() == limit.id())
        {
            return Some(guess);
        }
        self.positions.get(&limit.id()).copied()
    }

    /// Adds what was counted since the last time to the counters of the recorder.
    pub(crate) fn publish(&self) {
        let mut published = self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let routes = self.routes.labels();
        let all_allowed = |route: usize| -> u64 {
            self.threads
                .iter()
                .map(|counts| counts.all_allowed[route].get())
                .sum()
        };
        for (route, label) in &routes {
            // The limits of routes without details are counted under `other`.
            let all_of_limits = match *route {
                OTHER => {
                    let without = routes.iter().map(|(route, _)| *route);
                    without
                        .filter(|route| *route == OTHER || !self.has_details(*route))
                        .map(all_allowed)
                        .sum()
                }
                route => all_allowed(route),
            };
            self.publish_route(
                &mut published.cells,
                (*route, label),
                all_allowed(*route),
                all_of_limits,
            );
        }
        let Published {
            degraded, failures, ..
        } = &mut *published;
        for (at, label) in DegradedChoice::LABELS.iter().enumerate() {
            add(
                &mut degraded[at],
                &self.degraded[at],
                || counter!(table::DEGRADED, "choice" => *label),
            );
        }
        for (at, label) in StoreFailureKind::LABELS.iter().enumerate() {
            add(
                &mut failures[at],
                &self.failures[at],
                || counter!(table::STORE_ERRORS, "kind" => *label),
            );
        }
    }

    /// Returns the counters of each thread for a route.
    fn rows_of(&self, route: usize) -> impl Iterator<Item = &Row> {
        self.threads
            .iter()
            .filter_map(move |counts| counts.get(route))
    }

    /// Publishes the counters of a route; requests that all limits allowed are given apart.
    fn publish_route(
        &self,
        cells: &mut HashMap<Cell, (Counter, u64)>,
        (route, label): (usize, &str),
        all_of_requests: u64,
        all_of_limits: u64,
    ) {
        let rows: Vec<&Row> = self.rows_of(route).collect();
        let mut add = |cell: Cell, sum: u64, register: &dyn Fn() -> Counter| {
            if sum > 0 {
                let (counter, added) = cells.entry(cell).or_insert_with(|| (register(), 0));
                counter.increment(sum - *added);
                *added = sum;
            }
        };
        for (outcome, name) in RequestOutcome::LABELS.iter().enumerate() {
            let all = if outcome == RequestOutcome::Allowed as usize {
                all_of_requests
            } else {
                0
            };
            let sum = all
                + rows
                    .iter()
                    .map(|row| row.requests[outcome].get())
                    .sum::<u64>();
            let register =
                || counter!(table::REQUESTS, "route" => label.to_owned(), "outcome" => *name);
            add(
                Cell {
                    route,
                    limit: None,
                    outcome,
                },
                sum,
                &register,
            );
        }
        let is_empty = rows.is_empty() && all_of_limits == 0;
        let places = if is_empty || !self.has_details(route) {
            0
        } else {
            self.places
        };
        for position in 0..places {
            let limit = if position < MAX_LIMITS {
                self.limits[position].as_str()
            } else {
                OTHER_LABEL
            };
            for (outcome, name) in LimitOutcome::LABELS.iter().enumerate() {
                // More than one limit may share the last place.
                let limits = if position < MAX_LIMITS {
                    1
                } else {
                    (self.limits.len() - MAX_LIMITS) as u64
                };
                let all = if outcome == LimitOutcome::Allowed as usize {
                    all_of_limits * limits
                } else {
                    0
                };
                let counters = rows.iter().filter_map(|row| row.limits.get(position));
                let sum = all + counters.map(|limit| limit[outcome].get()).sum::<u64>();
                let register = || counter!(table::DECISIONS, "limit" => limit, "route" => label.to_owned(), "outcome" => *name);
                add(
                    Cell {
                        route,
                        limit: Some(position),
                        outcome,
                    },
                    sum,
                    &register,
                );
            }
        }
    }
}

impl Drop for PolicyMetrics {
    /// Publishes what was counted last, by requests that ended after the policy was replaced.
    fn drop(&mut self) {
        // The builder of a layer compiles the policy at each step, and no request comes between.
        if self.threads.iter_mut().next().is_some() {
            self.publish();
        }
    }
}

impl fmt::Debug for PolicyMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyMetrics")
            .field("limits", &self.limits.len())
            .field("routes", &NUMBERS)
            .finish_non_exhaustive()
    }
}

/// Records a value in a histogram, which is registered at its first value.
fn record(histogram: &OnceLock<Histogram>, register: impl FnOnce() -> Histogram, value: f64) {
    histogram.get_or_init(register).record(value);
}

/// Adds to a counter what was counted since the last time. It is registered at once, with zero.
fn add(
    (counter, added): &mut (Option<Counter>, u64),
    count: &AtomicU64,
    register: impl FnOnce() -> Counter,
) {
    let sum = count.load(Ordering::Relaxed);
    counter.get_or_insert_with(register).increment(sum - *added);
    *added = sum;
}

/// Returns the share of a limit that is left, from 0 to 1.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a figure for operators"
)]
fn share_left(status: &LimitStatus) -> f64 {
    status.remaining() as f64 / status.limit.max(1) as f64
}
