use std::sync::Arc;

use http::Request;
use tokio::time::timeout;
use tower_quota_core::Store;

use super::pipeline::without_turn;
use super::shared::Shared;
use super::stage::{Stage, Step};
use crate::observe::Event;

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
                self.charge(&rules, request)
            }
            Stage::Decide {
                call,
                start,
                span,
                mut context,
            } => {
                let rules = Arc::clone(&context.response.rules);
                let answer = call.answer(rules.settings.store_timeout);
                let (answer, recorded) = span.follow(answer).await;
                context.recorded = recorded;
                let duration = start.elapsed();
                span.end(duration, &answer);
                match answer {
                    Ok(decision) => {
                        let event = Event::Answered {
                            decision: &decision,
                            context: &context,
                            duration,
                        };
                        rules.observers.tell(&event, &rules);
                        rules.settings.local.store_answered();
                        context.since = None;
                        context.response.report.decision = Some(decision);
                        self.decided(context, request)
                    }
                    Err(failure) => self.fall_back(&failure, Some(duration), context, request),
                }
            }
            Stage::Queue {
                wait,
                place,
                mut admission,
                holds,
                mut context,
            } => {
                // Hold no ready service meanwhile, because a queued request would keep its permit.
                let is_closed = timeout(wait, place.closed()).await.is_ok();
                drop(place);
                if !is_closed {
                    if !holds.is_empty() {
                        return self.take_holds(admission, holds, context, request).await;
                    }
                    admission.report(context.response);
                    return Step::Forward(admission);
                }
                drop(admission);
                if let Some(decision) = &mut context.response.report.decision {
                    without_turn(decision);
                }
                Step::Respond(match holds.is_empty() {
                    // The observers saw the decision when the wait began.
                    true => self.respond(context, None, request),
                    false => self.refuse_over_quota(context, request),
                })
            }
        }
    }
}
