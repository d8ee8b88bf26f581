//! Answers refused requests.

use core::error::Error;
use core::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, Version};
use tower_quota_core::{Decision, Key, Store};

use super::shared::Shared;
use crate::head::RequestHead;
use crate::limit::Limit;
use crate::observe::Decided;
use crate::observe::Event;
use crate::random::random_up_to;
use crate::request::{RequestContext, ResponseContext, Rules};
use crate::response::{Reason, RefusalBody};

const SECOND: Duration = Duration::from_secs(1);

/// Marks a refusal after which the connection should be closed, in the extensions of the response.
///
/// See [`RateLimitLayer::close_after`](crate::RateLimitLayer::close_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseConnection;

impl<S: Store> Shared<S> {
    pub(super) fn refuse_over_quota<B>(
        &self,
        context: Box<RequestContext>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let reason = context.response.report.decision.as_ref().map(Reason::of);
        self.observe(&context, reason, request);
        self.respond(context, None, request)
    }

    /// Returns the response to a refused request that has been observed.
    ///
    /// Without a failure of the store, the decision refuses the request.
    pub(super) fn respond<B>(
        &self,
        mut context: Box<RequestContext>,
        failure: Option<&(dyn Error + Send + Sync + 'static)>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        context.response.report.jitter = draw_jitter(&context.response);
        let report = &context.response.report;
        let (reason, closes) = match (failure, &report.decision) {
            (Some(error), _) => (Reason::StoreFailure(error), false),
            (None, Some(decision)) => (Reason::of(decision), self.closes(decision, &context)),
            // No caller comes here without a decision or an error. If one did, the answer must not
            // look like a success.
            (None, None) => (Reason::TooManyLimits, false),
        };
        let Rules { plan, settings, .. } = &*context.response.rules;
        let head = RequestHead::of(request);
        let mut response = settings.responses.refuse(plan, reason, head, Some(report));
        context.response.attach(&mut response);
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
    fn closes(&self, decision: &Decision, context: &RequestContext) -> bool {
        let settings = &context.response.rules.settings;
        let Some(most) = settings.close_after else {
            return false;
        };
        let client = decision
            .tightest()
            .and_then(|status| context.keys.iter().find(|(limit, _)| *limit == status.name));
        // A limit without a key says nothing about the client of this connection.
        client.is_some_and(|(limit, key)| {
            let now = settings.local.now();
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
        let decided = Decided::refused(head, reason);
        let event = Event::Decided {
            decided: &decided,
            since: None,
        };
        rules.observers.tell(&event, rules);
        let responses = &rules.settings.responses;
        responses.refuse(&rules.plan, reason, head, None)
    }

    /// Tells the observers about a decided request.
    pub(super) fn observe<B>(
        &self,
        context: &RequestContext,
        reason: Option<Reason<'_>>,
        request: &Request<B>,
    ) {
        let rules = &context.response.rules;
        if reason.is_none() && !rules.observers.see_admissions {
            return;
        }
        let report = &context.response.report;
        let decided = Decided {
            head: RequestHead::of(request),
            decision: report.decision.as_ref(),
            reason,
            is_degraded: report.is_degraded(),
            keys: &context.keys,
        };
        let event = Event::Decided {
            decided: &decided,
            since: context.since,
        };
        rules.observers.tell(&event, rules);
    }
}

fn draw_jitter(context: &ResponseContext) -> Duration {
    let Rules { plan, settings, .. } = &*context.rules;
    let jitter = random_up_to(settings.responses.max_jitter);
    // A plan with holds settles requests.
    if plan.ends_with_decision() {
        return jitter;
    }
    let decision = context.report.decision.as_ref();
    let limit = decision.and_then(|decision| plan.limit(decision.tightest()?.name));
    match limit.is_some_and(Limit::is_hold) {
        // The end of a hold is unknown, so spread the retries over one and two whole seconds.
        true => jitter.max(random_up_to(2 * SECOND).saturating_sub(SECOND)),
        false => jitter,
    }
}
