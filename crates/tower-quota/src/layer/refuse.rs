//! Answers refused requests.

use core::error::Error;
use core::time::Duration;
use std::time::Instant;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, Version};
use tower_quota_core::{Decision, Key, Name, Store};

use super::shared::LayerState;
use crate::head::RequestHead;
use crate::limit::Limit;
use crate::observe::{Decided, Event, FoundClient};
use crate::policy::RequestCharges;
use crate::random::random_up_to;
use crate::request::{RequestReport, Rules};
use crate::response::{Reason, RefusalBody, Report};

const SECOND: Duration = Duration::from_secs(1);

/// Marks a refusal after which the connection should be closed, in the extensions of the response.
///
/// See [`Policy::close_after`](crate::Policy::close_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseConnection;

impl<S: Store> LayerState<S> {
    /// Refuses a request whose decision needs no wait, and therefore no context.
    pub(super) fn refuse_at_once<B>(
        &self,
        rules: &Rules,
        asked: &RequestCharges<'_, '_>,
        report: &mut Report,
        since: Option<Instant>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        asked.complete(report);
        let mut keys = Vec::new();
        if rules.observers.read_refused_keys {
            keys = asked.keys();
        }
        let decided = RequestReport {
            rules,
            report,
            keys: &keys,
            since,
        };
        self.refuse_over_quota(decided, request)
    }

    pub(super) fn refuse_over_quota<B>(
        &self,
        decided: RequestReport<'_>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let reason = decided.report.decision.as_ref().map(Reason::of);
        self.observe(&decided, reason, request);
        self.respond(decided, None, request)
    }

    /// Returns the response to a refused request that has been observed.
    ///
    /// Without a failure of the store, the decision refuses the request.
    pub(super) fn respond<B>(
        &self,
        decided: RequestReport<'_>,
        failure: Option<&(dyn Error + Send + Sync + 'static)>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let RequestReport {
            rules,
            report,
            keys,
            ..
        } = decided;
        let Rules { plan, settings, .. } = rules;
        report.jitter = draw_jitter(rules, report);
        let (reason, closes) = match (failure, &report.decision) {
            (Some(error), _) => (Reason::StoreFailure(error), false),
            (None, Some(decision)) => (Reason::of(decision), self.closes(rules, decision, keys)),
            // No caller comes here without a decision or an error. If one did, the answer must not
            // look like a success.
            (None, None) => (Reason::TooManyLimits, false),
        };
        let head = RequestHead::of(request);
        let mut response = settings.responses.refuse(plan, reason, head, Some(report));
        report.attach(settings.attaches_decision, &mut response);
        if closes {
            response.extensions_mut().insert(CloseConnection);
            if request.version() <= Version::HTTP_11 {
                let close = const { HeaderValue::from_static("close") };
                response.headers_mut().insert(CONNECTION, close);
            }
        }
        response
    }

    /// Returns whether the connection of a refused client should be closed.
    fn closes(&self, rules: &Rules, decision: &Decision, keys: &[(Name, Key<'_>)]) -> bool {
        let Some(most) = rules.plan.close_after else {
            return false;
        };
        let client = decision
            .tightest()
            .and_then(|status| keys.iter().find(|(limit, _)| *limit == status.name));
        // A limit without a key says nothing about the client of this connection.
        client.is_some_and(|(limit, key)| {
            let now = rules.settings.local.now();
            *key != Key::EVERYONE && self.observed.streaks.length(*limit, key, now) >= most.get()
        })
    }

    /// Refuses a request for a reason that is not its quota.
    pub(super) fn refuse_undecided<B>(
        &self,
        rules: &Rules,
        reason: Reason<'_>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let head = RequestHead::of(request);
        let found = FoundClient::new(rules);
        let decided = Decided::refused(rules, head, reason, found.as_ref());
        let event = Event::Decided {
            decided: &decided,
            since: None,
        };
        rules.observers.notify(&event, rules);
        let responses = &rules.settings.responses;
        responses.refuse(&rules.plan, reason, head, None)
    }

    /// Tells the observers about a decided request.
    pub(super) fn observe<B>(
        &self,
        decided: &RequestReport<'_>,
        reason: Option<Reason<'_>>,
        request: &Request<B>,
    ) {
        let RequestReport { rules, report, .. } = decided;
        if reason.is_none() && !rules.observers.see_admissions {
            return;
        }
        let since = decided.since;
        let found = FoundClient::new(rules).filter(|_| reason.is_some());
        let decided = Decided {
            head: RequestHead::of(request),
            decision: report.decision.as_ref(),
            reason,
            is_degraded: report.is_degraded(),
            version: rules.plan.version,
            keys: decided.keys,
            found: found.as_ref(),
        };
        let event = Event::Decided {
            decided: &decided,
            since,
        };
        rules.observers.notify(&event, rules);
    }
}

fn draw_jitter(rules: &Rules, report: &Report) -> Duration {
    let Rules { plan, settings, .. } = rules;
    let jitter = random_up_to(settings.responses.max_jitter);
    // A plan with holds settles requests.
    if plan.ends_with_decision() {
        return jitter;
    }
    let decision = report.decision.as_ref();
    let limit = decision.and_then(|decision| plan.limit(decision.tightest()?.name));
    match limit.is_some_and(Limit::is_hold) {
        // The end of a hold is unknown, so spread the retries over one and two whole seconds.
        true => jitter.max(random_up_to(2 * SECOND).saturating_sub(SECOND)),
        false => jitter,
    }
}
