use std::sync::Arc;

use http::Request;
use tokio::time::timeout;
use tower_quota_core::{Decision, Store};
use tracing::{Instrument, Span};

use super::pipeline::without_turn;
use super::shared::Shared;
use super::stage::{Stage, Step};
use crate::request::RequestContext;
use crate::store_call::StoreCallError;
use crate::traced::{record_decision, record_duration, record_failure};

impl<S: Store> Shared<S> {
    pub(super) async fn resume<B>(
        self: &Arc<Self>,
        stage: Stage<S>,
        request: &mut Request<B>,
    ) -> Step<S> {
        match stage {
            Stage::LookUp { look_ups, rules } => {
                request.extensions_mut().extend(look_ups.found().await);
                // Use the rules of the beginning, so that one policy decides the whole request.
                self.ask(&rules, request)
            }
            Stage::Decide {
                call,
                start,
                span,
                mut context,
            } => {
                let answer = call.answer(context.rules.settings.store_timeout);
                let (answer, recorded) = answer.instrument(span.clone()).await;
                context.recorded = recorded;
                let duration = start.elapsed();
                context
                    .rules
                    .metrics
                    .answered(duration, answer.as_ref().ok());
                record_duration(&span, duration);
                self.answered(answer, &span, context, request)
            }
            Stage::Queue {
                wait,
                place,
                mut admission,
                context,
            } => {
                // Hold no ready service meanwhile, because a queued request would keep its permit.
                let is_closed = timeout(wait, place.closed()).await.is_ok();
                if !is_closed {
                    admission.report(context);
                    return Step::Forward(admission);
                }
                drop(admission);
                // The listener saw the decision when the wait began.
                Step::Respond(self.respond(without_turn(context), None, request))
            }
        }
    }

    fn answered<B>(
        self: &Arc<Self>,
        answer: Result<Decision, StoreCallError<S::Error>>,
        span: &Span,
        context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        match answer {
            Ok(decision) => {
                record_decision(span, &decision);
                context.rules.watch.converted(&decision, &context);
                context.rules.settings.local.store_answered();
                self.outage.answered(context.rules.settings.local.now());
                self.decided(decision, context, request)
            }
            Err(failure) => {
                let kind = failure.kind();
                context.rules.metrics.store_failed(kind);
                record_failure(span, kind.label(), failure.error());
                self.fall_back(failure.error(), context, request)
            }
        }
    }
}
