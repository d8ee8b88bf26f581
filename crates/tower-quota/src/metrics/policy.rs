use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ::metrics::{counter, histogram};
use arc_swap::ArcSwap;
use tower_quota_core::{Decision, LimitStatus, Name};

use super::counts::{Count, RouteCounts};
use super::latency::Latency;
use super::table;
use crate::head::RequestHead;
use crate::observe::Decided;
use crate::observe::OutcomeLabel;
use crate::observe::{Event, Observer, StoreFailureKind};
use crate::policy::ById;
use crate::request::Rules;

const OTHER: &str = "other";

const MAX_ROUTES: usize = 512;

pub(super) const MAX_LIMITS: usize = 4_000;

const MAX_CELLS: usize = 8_192;

const MAX_HISTOGRAMS: usize = 64;

/// The labels of [`OnStoreFailure`], in the order of the variants.
const CHOICES: [&str; 3] = ["allow", "refuse", "local"];

/// The metrics of a policy. The next policy continues the series.
pub(crate) struct PolicyMetrics {
    pub(super) limits: Box<[Name]>,
    positions: ById,
    /// The counts by route. Requests read the map without a lock.
    routes: ArcSwap<Routes>,
    none: Arc<RouteCounts>,
    other: Arc<RouteCounts>,
    near: Box<[Count]>,
    pub(super) latency: Latency,
}

type Routes = HashMap<Arc<str>, Arc<RouteCounts>>;

impl PolicyMetrics {
    pub(crate) fn new(limits: impl Iterator<Item = Name>) -> Self {
        let limits: Box<[Name]> = limits.collect();
        let places = limits.len().min(MAX_LIMITS + 1);
        // Begin these series at 0, so that a rate sees the first failure.
        for kind in StoreFailureKind::LABELS {
            counter!(table::STORE_ERRORS, "kind" => kind).increment(0);
        }
        for choice in CHOICES {
            counter!(table::DEGRADED, "choice" => choice).increment(0);
        }
        Self {
            positions: ById::new(limits.iter().copied()),
            routes: ArcSwap::default(),
            none: RouteCounts::new("none", places),
            other: RouteCounts::new(OTHER, places),
            near: (0..places).map(|_| Count::default()).collect(),
            latency: Latency::new(),
            limits,
        }
    }

    fn answered(&self, duration: Duration) {
        self.latency.record(duration);
        histogram!(table::STORE_DURATION).record(duration);
    }

    fn record_remaining(&self, decision: &Decision) {
        for status in decision.statuses() {
            self.record(table::REMAINING, status.name, share_left(status));
        }
    }

    fn record(&self, histogram: &'static str, limit: Name, value: f64) {
        if let Some(position) = self.positions.find(limit.id()) {
            let is_own = position < MAX_HISTOGRAMS;
            let label = if is_own { limit.as_str() } else { OTHER };
            histogram!(histogram, "limit" => label).record(value);
        }
    }

    fn count(&self, decided: &Decided<'_>, since: Option<Instant>) {
        if let (Some(since), Some(decision)) = (since, decided.decision) {
            histogram!(table::DECISION_DURATION).record(since.elapsed());
            self.record_remaining(decision);
        }
        self.with_route(&decided.head, |route| {
            let outcome = decided.outcome();
            let is_refused = matches!(outcome, OutcomeLabel::Limited | OutcomeLabel::Never);
            count_request(route, outcome);
            let statuses = decided.decision.map_or(&[][..], Decision::statuses);
            for status in statuses {
                let label = match OutcomeLabel::of_limit(status) {
                    OutcomeLabel::Allowed | OutcomeLabel::Queued if is_refused => {
                        OutcomeLabel::WouldAllow
                    }
                    label => label,
                };
                let is_near = decided.reason.is_none() && is_near(status);
                self.count_limit(route, status.name, label, is_near);
            }
            if !decided.is_degraded || decided.reason.is_some() {
                return;
            }
            // Limits without a status let the request pass uncounted.
            for (limit, _) in decided.keys {
                if !statuses.iter().any(|status| status.name == *limit) {
                    self.count_limit(route, *limit, OutcomeLabel::Degraded, false);
                }
            }
        });
        if decided.reason.is_some()
            && let Some(decision) = decided.decision
            && let Some(retry) = decision.retry_after()
            && let Some(status) = decision.tightest()
        {
            self.record(table::RETRY_AFTER, status.name, retry.as_secs_f64());
        }
    }

    fn skipped(&self, head: &RequestHead<'_>) {
        self.with_route(head, |route| count_request(route, OutcomeLabel::Skipped));
    }

    fn count_limit(&self, route: &RouteCounts, limit: Name, outcome: OutcomeLabel, is_near: bool) {
        let route = if route.limits.is_empty() {
            &self.other
        } else {
            route
        };
        if let Some(position) = self.positions.find(limit.id())
            && let Some(counts) = route.limits.get(position.min(MAX_LIMITS))
        {
            let label = self.label(position);
            counts[outcome as usize].add_one(|| {
                let route = Arc::clone(&route.route);
                counter!(table::DECISIONS, "limit" => label, "route" => route, "outcome" => outcome.text())
            });
            if is_near {
                self.near[position.min(MAX_LIMITS)]
                    .add_one(|| counter!(table::NEAR_LIMIT, "limit" => label));
            }
        }
    }

    fn with_route(&self, head: &RequestHead<'_>, count: impl FnOnce(&RouteCounts)) {
        let Some(pattern) = head.matched_route() else {
            return count(&self.none);
        };
        match self.routes.load().get(pattern) {
            Some(route) => count(route),
            None => count(&self.add_route(pattern)),
        }
    }

    /// Returns the counts of a new route, or of `other` if the map is full.
    #[cold]
    fn add_route(&self, pattern: &str) -> Arc<RouteCounts> {
        if self.routes.load().len() < MAX_ROUTES {
            self.routes.rcu(|routes| self.with_added(routes, pattern));
        }
        let routes = self.routes.load();
        Arc::clone(routes.get(pattern).unwrap_or(&self.other))
    }

    fn with_added(&self, routes: &Routes, pattern: &str) -> Routes {
        let mut routes = routes.clone();
        // Another thread may have added the route.
        if routes.len() < MAX_ROUTES && !routes.contains_key(pattern) {
            let places = self.other.limits.len();
            // The sum counts the routes `none` and `other` too.
            let has_cells = (routes.len() + 2) * places < MAX_CELLS;
            let route = RouteCounts::new(pattern, if has_cells { places } else { 0 });
            routes.insert(Arc::clone(&route.route), route);
        }
        routes
    }

    pub(super) fn routes(&self) -> Vec<Arc<RouteCounts>> {
        let mut routes: Vec<_> = self.routes.load().values().cloned().collect();
        routes.extend([Arc::clone(&self.none), Arc::clone(&self.other)]);
        routes
    }

    fn label(&self, position: usize) -> &'static str {
        let own = self.limits.get(position).filter(|_| position < MAX_LIMITS);
        own.map_or(OTHER, |limit| limit.as_str())
    }
}

fn count_request(route: &RouteCounts, outcome: OutcomeLabel) {
    route.requests[outcome as usize].add_one(|| {
        let route = Arc::clone(&route.route);
        counter!(table::REQUESTS, "route" => route, "outcome" => outcome.text())
    });
}

impl Observer for PolicyMetrics {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        match event {
            Event::Skipped(head) => self.skipped(head),
            Event::Decided { decided, since } => self.count(decided, *since),
            Event::Answered {
                decision,
                context,
                duration,
            } => {
                self.answered(*duration);
                histogram!(table::DECISION_DURATION).record(*duration);
                if context.since.is_some() {
                    self.record_remaining(decision);
                }
            }
            Event::Failed(failure) => {
                counter!(table::STORE_ERRORS, "kind" => failure.kind.label()).increment(1);
                if let Some(duration) = failure.duration {
                    self.answered(duration);
                }
                if let Some(choice) = failure.choice {
                    counter!(table::DEGRADED, "choice" => CHOICES[choice as usize]).increment(1);
                }
            }
        }
    }

    fn sees_admissions(&self) -> bool {
        true
    }

    fn sees_answers(&self) -> bool {
        true
    }
}

/// Returns whether less than a fifth of an admitting limit remains.
fn is_near(status: &LimitStatus) -> bool {
    !status.outcome.is_refusal() && status.remaining() < status.limit.div_ceil(5)
}

/// Returns the remaining share of the limit, from 0 to 1.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a figure for operators"
)]
fn share_left(status: &LimitStatus) -> f64 {
    status.remaining() as f64 / status.limit.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn many_routes_share_one_label() {
        let metrics = PolicyMetrics::new([const { Name::new("limit") }].into_iter());
        for number in 0..2 * MAX_ROUTES {
            let route = metrics.add_route(&format!("/{number}"));
            assert_eq!(&*route.route == OTHER, number >= MAX_ROUTES);
            assert!(Arc::ptr_eq(
                &route,
                &metrics.add_route(&format!("/{number}"))
            ));
        }
        let routes = metrics.routes();
        let labels: HashSet<&str> = routes.iter().map(|counts| &*counts.route).collect();
        assert_eq!(labels.len(), MAX_ROUTES + 2);
    }

    #[test]
    fn threads_lose_no_count() {
        let metrics = PolicyMetrics::new([].into_iter());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..1_000 {
                        let route = metrics.add_route(&format!("/{}", number % 100));
                        count_request(&route, OutcomeLabel::Allowed);
                    }
                });
            }
        });
        let counts = metrics.routes();
        let of_route = |route: &Arc<RouteCounts>| route.requests[0].get();
        assert_eq!(counts.iter().map(of_route).sum::<u64>(), 4_000);
    }
}
