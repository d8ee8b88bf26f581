//! What some requests have to go through before the inner service: look-ups, a store that takes time, a wait.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_quota_core::Store;

use super::answer::{Answer, Asked, Further};
use super::future::take;
use super::gate::Gate;
use super::pending::Pending;
use super::report::Told;
use super::turn::Turn;
use super::verdict::{Case, Verdict};
use crate::look_up::LookingUp;
use crate::plan::Unasked;
use crate::response::{Reason, RefusalBody};
use crate::settle::Reservation;

pin_project! {
    /// How far such a request has come. What a stage hands to the next is an `Option` to be taken from behind the pin.
    #[project = BeforeProjection]
    pub(super) enum Before<Svc, S, B>
    where
        S: Store,
    {
        LookingUp {
            #[pin]
            looking_up: LookingUp,
            held: Option<Held<Svc, S, B>>,
        },
        Deciding {
            #[pin]
            pending: Pending<S>,
            case: Option<Case>,
            held: Option<Held<Svc, S, B>>,
        },
        Waiting {
            wait: Duration,
            // Set when it is polled first: only then there has to be a runtime with a timer.
            #[pin]
            sleep: Option<Sleep>,
            held: Option<(Held<Svc, S, B>, Answer<S>, Case, Turn)>,
        },
    }
}

/// A request and the service that is ready for it.
pub(super) struct Held<Svc, S, B> {
    pub(super) gate: Arc<Gate<S>>,
    pub(super) service: Svc,
    pub(super) request: Request<B>,
}

/// What a stage hands on to.
#[expect(clippy::large_enum_variant, reason = "it is moved once, to where it is taken apart")]
enum Next<Svc, S: Store, B> {
    Before(Before<Svc, S, B>),
    After(After<Svc, S, B>),
}

/// What comes of it.
pub(super) enum After<Svc, S, B> {
    /// The inner service is to be called.
    Run(Held<Svc, S, B>, Told<S>, Reservation),
    /// This is the answer.
    Refuse(Response<RefusalBody>),
}

impl<Svc, S: Store, B> Before<Svc, S, B> {
    /// The store is asked when this has been found out.
    pub(super) const fn looking_up(looking_up: LookingUp, held: Held<Svc, S, B>) -> Self {
        Self::LookingUp { looking_up, held: Some(held) }
    }

    /// The store has been asked.
    pub(super) fn deciding(answer: S::Future, mut case: Case, held: Held<Svc, S, B>) -> Self {
        let pending = Pending::new(&held.gate, answer, case.ledger.take());
        Self::Deciding { pending, case: Some(case), held: Some(held) }
    }

    /// The request has a turn to wait for.
    pub(super) fn waiting(wait: Duration, answer: Answer<S>, case: Case, turn: Turn, held: Held<Svc, S, B>) -> Self {
        Self::Waiting { wait, sleep: None, held: Some((held, answer, case, turn)) }
    }

    /// One word for the stage.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::LookingUp { .. } => "looking up",
            Self::Deciding { .. } => "deciding",
            Self::Waiting { .. } => "waiting",
        }
    }
}

impl<Svc, S: Store, B> Held<Svc, S, B> {
    /// What is to be done now that all has been looked up.
    fn ask(self) -> Next<Svc, S, B> {
        let mut further = Further::Nothing;
        match self.gate.ask(&self.request, &mut further) {
            Ok(Asked::Pass) => Next::After(After::Run(self, Told::Nothing, Reservation::default())),
            Ok(Asked::Further) => match further {
                Further::Nothing => Next::After(After::Run(self, Told::Nothing, Reservation::default())),
                Further::Answered(answer, case) => self.go_on(answer, case),
                Further::Pending(answer, case) => Next::Before(Before::deciding(answer, case, self)),
            },
            Err(Unasked::NoLimit) => Next::After(After::Run(self, Told::Nothing, Reservation::default())),
            Err(Unasked::Missing(scope)) => {
                let response = self.gate.turn_away(Reason::MissingKey(scope), &self.request);
                Next::After(After::Refuse(response))
            }
        }
    }

    /// What is to be done now that there is this answer.
    fn go_on(mut self, mut answer: Answer<S>, mut case: Case) -> Next<Svc, S, B> {
        match self.gate.judge(&mut answer, &mut case, &mut self.request) {
            Verdict::Pass(reservation) => {
                let told = Told::of(&self.gate, answer, case);
                Next::After(After::Run(self, told, reservation))
            }
            Verdict::Wait(wait, turn) => Next::Before(Before::waiting(wait, answer, case, turn, self)),
            Verdict::Refuse(response) => Next::After(After::Refuse(response)),
        }
    }
}

impl<Svc, S: Store, B> Future for Before<Svc, S, B> {
    type Output = After<Svc, S, B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project() {
                BeforeProjection::LookingUp { looking_up, held } => {
                    let found = ready!(looking_up.poll(cx));
                    let mut held = take(held);
                    held.request.extensions_mut().extend(found);
                    held.ask()
                }
                BeforeProjection::Deciding { pending, case, held } => {
                    let (answer, ledger) = ready!(pending.poll(cx));
                    let case = Case { ledger, ..take(case) };
                    take(held).go_on(answer, case)
                }
                BeforeProjection::Waiting { wait, mut sleep, held } => {
                    if sleep.is_none() {
                        #[expect(clippy::disallowed_methods, reason = "waiting one's turn is what was asked for")]
                        sleep.set(Some(tokio::time::sleep(*wait)));
                    }
                    if let Some(sleep) = sleep.as_pin_mut() {
                        ready!(sleep.poll(cx));
                    }
                    let (mut held, mut answer, case, turn) = take(held);
                    let reservation = match &mut answer {
                        Ok(decision) => case.reserve(decision, turn.take(), &mut held.request),
                        Err(_) => Reservation::default(),
                    };
                    let told = Told::of(&held.gate, answer, case);
                    Next::After(After::Run(held, told, reservation))
                }
            };
            match next {
                Next::Before(next) => self.set(next),
                Next::After(after) => return Poll::Ready(after),
            }
        }
    }
}
