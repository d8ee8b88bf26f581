use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Lock, Name};

use super::seen::Seen;
use super::{Check, Checks, two_quotas};
use crate::head::{Note, Notes, RequestHead};
use crate::key::Mistake;
use crate::observe::{Event, Observer};
use crate::policy::{Plan, RequestCharges};
use crate::request::{RequestContext, Rules};
use crate::response::Reason;

/// The watched requests, unless a check needs more.
const WATCHED_REQUESTS: u64 = 1_000;

const MAX_WATCHED_REQUESTS: u64 = 10_000;

/// The watched request at which the layer compares its quotas with other layers.
const COMPARED_REQUEST: u64 = Check::TwoQuotas.threshold();

/// Examines the first requests. Later requests only pay for one load and a branch.
pub(crate) struct Watch {
    is_open: AtomicBool,
    checks: Arc<Checks>,
    store: usize,
    seen: Lock<Seen>,
    /// For each limit of the plan, whether to ignore conversions.
    ignored: Box<[AtomicBool]>,
    /// For each limit of the plan, whether a request has had the limit.
    met: Box<[AtomicBool]>,
}

/// Tells inner layers which limits counted the request, with store and scope.
///
/// A mark costs an allocation, so only a watching layer attaches marks.
#[derive(Clone, Default)]
pub(crate) struct Mark(Vec<(usize, Name, Name)>);

impl Mark {
    pub(crate) fn attach_to<B>(self, request: &mut Request<B>) {
        let mark = request.extensions_mut().get_or_insert_default::<Self>();
        mark.0.extend(self.0);
    }
}

impl Watch {
    pub(crate) fn new(checks: Arc<Checks>, store: usize, limits: usize) -> Self {
        Self {
            is_open: AtomicBool::new(true),
            checks,
            store,
            seen: Lock::default(),
            ignored: (0..limits).map(|_| AtomicBool::new(false)).collect(),
            met: (0..limits).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns empty notes for a request, unless the watch has ended.
    #[inline]
    pub(crate) fn notes(&self) -> Option<Notes> {
        self.is_open().then(Notes::default)
    }

    /// Examines a request that the limits have read. Returns the limits that count the request, if any.
    pub(crate) fn examine(
        &self,
        notes: &Notes,
        asked: &RequestCharges<'_, '_>,
        head: &RequestHead<'_>,
        rules: &Arc<Rules>,
    ) -> Option<Box<Mark>> {
        self.count(rules);
        self.read(notes, head);
        self.mark(asked, head, &rules.plan)
    }

    /// Reads the notes of keys and conditions.
    pub(crate) fn read(&self, notes: &Notes, head: &RequestHead<'_>) {
        for note in notes.take() {
            match note {
                Note::Address { scope, mistake } => self.address(scope.as_str(), mistake, head),
                #[cfg(feature = "axum")]
                Note::RouteMatched { pattern } => self.disprove(Check::UnreachableLimit, &pattern),
                #[cfg(feature = "axum")]
                Note::RouteMissed { pattern, reason } => {
                    self.show(Check::UnreachableLimit, &pattern, || {
                        format!(
                            "`when::route({pattern:?})` has matched no request, because {reason}"
                        )
                    });
                }
            }
        }
    }

    fn count(&self, rules: &Arc<Rules>) {
        let mut seen = self.seen.lock();
        seen.requests += 1;
        if seen.requests == COMPARED_REQUEST {
            drop(seen);
            return self.compare_quotas(rules);
        }
        if seen.requests < WATCHED_REQUESTS || !seen.requests.is_multiple_of(100) {
            return;
        }
        let mut suspects = seen.suspects.iter();
        let is_partly_proved = suspects
            .any(|((check, _), shown)| shown.is_some_and(|shown| shown < check.threshold()));
        let is_unmet = self.met.iter().any(|met| !met.load(Ordering::Relaxed));
        if seen.requests >= MAX_WATCHED_REQUESTS || !is_partly_proved && !is_unmet {
            self.is_open.store(false, Ordering::Relaxed);
        }
    }

    fn compare_quotas(&self, rules: &Arc<Rules>) {
        for limit in two_quotas::conflicts(rules) {
            let check = Check::TwoQuotas;
            self.checks.record(check, check.threshold(), || {
                format!(
                    "the limit {:?}: another layer counts it by the same key and in the same store, but with another \
                     quota, so both count wrongly. Give one of the limits another name",
                    limit.as_str()
                )
            });
        }
    }

    pub(super) fn is_of_same_layer(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.checks, &other.checks)
    }

    pub(super) const fn is_of_same_store(&self, other: &Self) -> bool {
        self.store == other.store
    }

    /// Returns the positions of limits that no watched request has had.
    pub(crate) fn unmet(&self) -> impl Iterator<Item = usize> {
        let met = self.met.iter().enumerate();
        met.filter(|(_, met)| !met.load(Ordering::Relaxed))
            .map(|(position, _)| position)
    }

    fn address(&self, key: &str, mistake: Option<Mistake>, head: &RequestHead<'_>) {
        let check = match &mistake {
            Some(Mistake::NoPeerAddress) => return self.checks.refused(Reason::NoPeerAddress),
            Some(Mistake::UntrustedProxy { .. }) => Check::UntrustedProxy,
            Some(Mistake::NoForwardedAddress { header }) => {
                if self.seen.lock().may_be_health_check(header, head.path()) {
                    return;
                }
                Check::NoForwardedAddress
            }
            None => {
                if self.seen.lock().is_forwarded(head) {
                    self.disprove(Check::UntrustedProxy, key);
                    self.disprove(Check::NoForwardedAddress, key);
                }
                return;
            }
        };
        self.show(check, key, || {
            let mistake = mistake.map(|mistake| mistake.to_string());
            format!("the key {key:?}: {}", mistake.unwrap_or_default())
        });
    }

    fn mark(
        &self,
        asked: &RequestCharges<'_, '_>,
        head: &RequestHead<'_>,
        plan: &Plan,
    ) -> Option<Box<Mark>> {
        let outer = head.extensions().get::<Mark>();
        let mut mark = Mark::default();
        for (limit, scope, units) in asked.counted() {
            if let Some(met) = plan
                .position(limit)
                .and_then(|position| self.met.get(position))
            {
                met.store(true, Ordering::Relaxed);
            }
            if units == 0 {
                continue;
            }
            let counted = (self.store, limit, scope);
            if outer.is_some_and(|outer| outer.0.contains(&counted)) {
                self.show(Check::CountedTwice, limit.as_str(), || {
                    format!(
                        "the limit {:?}: two layers count it for the same request, by the same key and in the same store, so \
                         each request costs twice. Remove one of the layers, or give one of the limits another name",
                        limit.as_str()
                    )
                });
            }
            mark.0.push(counted);
        }
        (!mark.0.is_empty()).then(|| Box::new(mark))
    }

    /// Counts the stored states that a decision has converted, also after the watch has ended.
    fn converted(&self, decision: &Decision, context: &RequestContext) {
        let ignored = |limit| {
            self.ignored
                .get(context.response.rules.plan.position(limit)?)
        };
        // With several quotas in one process, conversions do not prove that another process exists.
        for (limit, _) in &context.response.report.overrides {
            if let Some(ignored) = ignored(*limit)
                && !ignored.load(Ordering::Relaxed)
            {
                ignored.store(true, Ordering::Relaxed);
            }
        }
        for position in decision.converted() {
            let limit = decision.statuses()[position].name;
            let key = context.keys.iter().find(|(name, _)| *name == limit);
            let (Some((_, key)), Some(ignored)) = (key, ignored(limit)) else {
                continue;
            };
            if ignored.load(Ordering::Relaxed)
                || !self.seen.lock().turns.prove(limit, key, decision.at())
            {
                continue;
            }
            ignored.store(true, Ordering::Relaxed);
            let check = Check::QuotasInTurn;
            self.checks.record(check, check.threshold(), || {
                format!(
                    "the limit {:?}: its quota and another quota keep taking turns on a stored counter. If another \
                     service has a limit of this name in the same Redis, give each service its own prefix, as in \
                     `RedisStore::options().prefix(\"orders\")`. If instances of this service have different rules, as \
                     during a deploy, no change is needed",
                    limit.as_str()
                )
            });
        }
    }

    fn show(&self, check: Check, subject: &str, text: impl FnOnce() -> String) {
        let mut seen = self.seen.lock();
        let Some(shown) = seen.suspect(check, subject) else {
            return;
        };
        *shown += 1;
        let shown = *shown;
        drop(seen);
        self.checks.record(check, shown, text);
    }

    fn disprove(&self, check: Check, subject: &str) {
        *self.seen.lock().suspect(check, subject) = None;
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Answered {
            decision, context, ..
        } = event
        {
            self.converted(decision, context);
        }
    }

    fn sees_answers(&self) -> bool {
        true
    }
}
