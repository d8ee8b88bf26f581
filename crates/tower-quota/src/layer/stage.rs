//! The waits of a request before the layer calls the inner service.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::Extensions;
use pin_project_lite::pin_project;
use tokio::sync::futures::OwnedNotified;
use tower_quota_core::{Decision, Store};

use super::admission::Admission;
use super::shared::CachedStore;
use crate::policy::LookUps;
use crate::request::{Place, RequestContext, Rules};
use crate::settle::InFlight;
use crate::store_call::{Deadline, StoreCallError};

pin_project! {
    #[project = StageProjection]
    pub(super) enum Stage<S>
    where
        S: Store,
    {
        LookUp {
            #[pin]
            look_ups: LookUps,
            // The policy of the look-up also decides the request.
            rules: Arc<Rules>,
        },
        Decide {
            #[pin]
            call: InFlight<CachedStore<S>>,
            #[pin]
            deadline: Deadline,
            context: Option<Box<RequestContext>>,
        },
        Queue {
            #[pin]
            turn: Deadline,
            #[pin]
            closed: OwnedNotified,
            place: Place,
            queued: Option<Queued>,
        },
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is made"
)]
pub(super) enum Event<S: Store> {
    Found(Extensions, Arc<Rules>),
    Answered(
        Result<Decision, StoreCallError<S::Error>>,
        Box<RequestContext>,
    ),
    Turn(Queued),
    /// The queue closed before the turn.
    QueueClosed(Queued),
}

/// A request in the queue. Dropping the request refunds the turn.
pub(super) struct Queued {
    pub(super) admission: Admission,
    pub(super) context: Box<RequestContext>,
}

impl<S: Store> Future for Stage<S> {
    type Output = Event<S>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Event<S>> {
        Poll::Ready(match self.project() {
            StageProjection::LookUp { look_ups, rules } => {
                Event::Found(ready!(look_ups.poll(cx)), Arc::clone(rules))
            }
            StageProjection::Decide {
                call,
                deadline,
                context,
            } => {
                let polled = match context {
                    Some(context) => context.span.within(|| call.poll(cx)),
                    None => call.poll(cx),
                };
                let (answer, recorded) = match polled {
                    Poll::Ready((answer, recorded)) => {
                        (answer.map_err(StoreCallError::Store), recorded)
                    }
                    Poll::Pending => {
                        let timeout = ready!(deadline.poll_timeout(cx));
                        (Err(StoreCallError::TimedOut(timeout)), Vec::new())
                    }
                };
                let mut context = take(context);
                context.recorded = recorded;
                Event::Answered(answer, context)
            }
            StageProjection::Queue {
                turn,
                closed,
                place,
                queued,
            } => {
                if turn.poll(cx).is_ready() {
                    return Poll::Ready(Event::Turn(take(queued)));
                }
                let is_notified = closed.poll(cx).is_ready();
                // The queue may have closed between taking the place and registering the notification.
                if !is_notified && !place.is_closed() {
                    return Poll::Pending;
                }
                Event::QueueClosed(take(queued))
            }
        })
    }
}

#[expect(
    clippy::expect_used,
    reason = "documented: only a future polled after completion finds a slot empty"
)]
pub(super) fn take<T>(slot: &mut Option<T>) -> T {
    slot.take().expect("polled after completion")
}
