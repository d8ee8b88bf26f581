use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::timeout;
use tower_quota_core::{Decision, Store};
use tower_service::Service;

use super::admission::Finish;
use super::body::ResponseBody;
use super::pipeline::without_turn;
use super::shared::LayerState;
use super::stage::{Stage, Step};
use crate::head::RequestHead;
use crate::observe::Event;
use crate::request::RequestContext;
use crate::response::RefusalBody;

pin_project! {
    /// The future of [`RateLimit`](crate::RateLimit).
    ///
    /// If you drop the future while a request waits, the layer refunds all charges. [`settle`](crate::settle) describes
    /// the refunds at other times.
    ///
    /// # Panics
    /// Panics when you poll a completed future, or when waits and look-ups lack a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, E> {
        #[pin]
        pub(super) state: State<F, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    pub(super) enum State<F, E> {
        // The wait is boxed, because every future reserves the space, and few requests wait.
        Waiting {
            next: Pin<Box<dyn Future<Output = Result<State<F, E>, E>> + Send>>,
        },
        Running {
            #[pin]
            response: F,
            finish: Finish,
        },
        Responding {
            response: Option<Response<RefusalBody>>,
        },
    }
}

/// Notifies the observers that the store has answered.
pub(super) fn report_answer(decision: &Decision, context: &RequestContext, duration: Duration) {
    let rules = &context.response.rules;
    let event = Event::Answered {
        decision,
        context,
        duration,
    };
    rules.observers.notify(&event, rules);
    rules.settings.local.store_answered();
}

/// Waits until the request is refused, or until a clone of the service is ready for it.
pub(super) async fn wait<Svc, S, B>(
    shared: Arc<LayerState<S>>,
    mut stage: Stage<S>,
    mut service: Svc,
    mut request: Request<B>,
) -> Result<State<Svc::Future, Svc::Error>, Svc::Error>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    let admission = loop {
        match shared.resume(stage, &mut request).await {
            Step::Forward(admission) => break admission,
            Step::Respond(response) => {
                return Ok(State::Responding {
                    response: Some(response),
                });
            }
            Step::Wait(next) => stage = next,
        }
    };
    poll_fn(|cx| service.poll_ready(cx)).await?;
    let finish = admission.forward(&mut request);
    Ok(State::Running {
        response: service.call(request),
        finish,
    })
}

impl<F, E, R> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[expect(
        clippy::expect_used,
        reason = "documented: only a future polled after completion has no response"
    )]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Running { response, finish } => {
                    let response = ready!(response.poll(cx))?;
                    return Poll::Ready(Ok(core::mem::take(finish).apply_to(response)));
                }
                StateProjection::Responding { response } => {
                    let response = response.take().expect("polled after completion");
                    return Poll::Ready(Ok(response.map(ResponseBody::refusal)));
                }
                StateProjection::Waiting { next } => ready!(next.as_mut().poll(cx))?,
            };
            state.set(next);
        }
    }
}

impl<F, E> fmt::Debug for ResponseFuture<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<S: Store> LayerState<S> {
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
                let (answer, recorded) = match &span {
                    Some(span) => span.follow(answer).await,
                    None => answer.await,
                };
                context.recorded = recorded;
                let duration = start.elapsed();
                if let Some(span) = span {
                    span.end(duration, &answer);
                }
                match answer {
                    Ok(decision) => {
                        report_answer(&decision, &context, duration);
                        context.since = None;
                        context.response.report.decision = Some(decision);
                        self.decided(context, request)
                    }
                    Err(failure) => {
                        let fallback = context.fallback(&RequestHead::of(request), |_| true);
                        self.fall_back(&failure, Some(duration), context, fallback, request)
                    }
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
                    true => self.respond(context.report(), None, request),
                    false => self.refuse_over_quota(context.report(), request),
                })
            }
        }
    }
}
