use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Key, LimitStatus, Name, Operation, Outcome, Store};

use super::admission::Admission;
use super::shared::Shared;
use super::stage::{Stage, Step};
use crate::checks::Mark;
use crate::clients::now;
use crate::flagged::Flagged;
use crate::head::RequestHead;
use crate::metrics::sample;
use crate::policy::{Ask, Explained, LookUps};
use crate::random::random_up_to;
use crate::request::{RequestContext, Rules};
use crate::response::Reason;
use crate::settle::{ChargeRecord, InFlight, Settler};

impl<S: Store> Shared<S> {
    #[inline]
    pub(super) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Step<S> {
        let rules = &self.rules();
        if rules.plan.begins_with_limits {
            self.ask(rules, request)
        } else {
            self.look_up(rules, request)
        }
    }

    #[inline(never)]
    fn look_up<B>(self: &Arc<Self>, rules: &Arc<Rules>, request: &mut Request<B>) -> Step<S> {
        let mut head = RequestHead::of(request);
        if rules.watch.is_open() {
            head = head.watched_by(&rules.watch);
        }
        match rules.plan.lists.find(&head) {
            Some(Explained::Refused(reason)) => {
                Step::Respond(self.refuse_undecided(rules, reason, request))
            }
            Some(_) => {
                rules.metrics.skipped(&head);
                Step::Forward(Admission::default())
            }
            None if rules.plan.look_ups.is_empty() => self.ask(rules, request),
            None => {
                let look_ups = LookUps::begin(&rules.plan.look_ups, &head);
                Step::Wait(Stage::LookUp {
                    look_ups,
                    rules: Arc::clone(rules),
                })
            }
        }
    }

    #[inline]
    pub(super) fn ask<B>(
        self: &Arc<Self>,
        rules: &Arc<Rules>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let mut mark = Mark::default();
        if !rules.watch.is_open() {
            // Return directly, to avoid a copy of the large step.
            return self.ask_limits(rules, request, &mut mark);
        }
        let step = self.ask_limits(rules, request, &mut mark);
        mark.attach_to(request);
        step
    }

    /// Sends the charges to the store. Fills in the mark of the request while the policy is watched.
    #[inline]
    fn ask_limits<B>(
        self: &Arc<Self>,
        rules: &Arc<Rules>,
        request: &mut Request<B>,
        mark: &mut Mark,
    ) -> Step<S> {
        let mut head = RequestHead::of(request);
        if rules.watch.is_open() {
            rules.watch.count();
            head = head.watched_by(&rules.watch);
        }
        let mut ask = Ask::new(&rules.plan);
        ask.read(&head);
        if ask.is_empty() {
            return match ask.refusal {
                Some(reason) => Step::Respond(self.refuse_undecided(rules, reason, request)),
                None => {
                    rules.metrics.skipped(&head);
                    Step::Forward(Admission::default())
                }
            };
        }
        if rules.watch.is_open() {
            *mark = rules.watch.mark(&ask, &head);
        }
        // Look at the blocks before the store, so that a blocked client costs no call and takes no
        // unit.
        if !self.blocks.are_empty() && ask.any_key(&head, |limit, key| self.blocks.has(limit, key))
        {
            return Step::Respond(self.refuse_undecided(rules, Reason::Blocked, request));
        }
        #[cfg(feature = "top")]
        self.note_busy(rules, &ask);
        let charges = ask.charges(|key| self.queue.has_room(key));
        let mut decision = Decision::default();
        let start = sample();
        // A memory store answers here, without a future, a box or a wait.
        let has_answered = self.store.store().check_at_once(&charges, &mut decision);
        if has_answered {
            rules.metrics.decided_at_once(start, &decision);
        }
        // A refusal from memory does not prove that the store is available.
        let refusal = match has_answered {
            true => Some(decision),
            false => self.store.refusal(&charges),
        };
        if let Some(decision) = refusal {
            if rules.ends_with_decision && decision.is_allowed() && ask.refusal.is_none() {
                rules.metrics.admitted(&head, &decision);
                return Step::Forward(Admission::default());
            }
            let needs_keys =
                !decision.is_allowed() || rules.plan.makes_wait || rules.settings.reads_keys();
            let mut context = RequestContext::new(rules, &ask, needs_keys);
            context.recorded = rules.plan.record(&charges);
            // The charges borrow from the request, which moves on.
            drop(charges);
            drop(ask);
            return self.decided(decision, context, request);
        }
        let mut context = RequestContext::new(rules, &ask, true);
        context.fallback = ask.fallback();
        context.report.only_shadows = ask.has_only_shadows();
        let span = rules
            .settings
            .spans
            .begin(rules.plan.version, &context.keys);
        let (answer, known_refusal) = span.in_scope(|| self.store.send(&charges));
        context.fallback.known_refusal = known_refusal.map(Box::new);
        let recorded = match ask.refusal {
            // Keep a record during the call, because the client may hang up before the answer.
            None => rules.plan.record_in_flight(&charges),
            Some(_) => Vec::new(),
        };
        let call = InFlight::new(answer, recorded, self.settler());
        Step::Wait(Stage::Decide {
            call,
            start: now(),
            span,
            context,
        })
    }

    pub(super) fn decided<B>(
        self: &Arc<Self>,
        decision: Decision,
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let decision = context.rules.plan.delayed(decision);
        let decision = context.report.decision.insert(decision);
        if !decision.is_allowed() {
            return Step::Respond(self.refuse_over_quota(context, request));
        }
        // Keep the charges, so that limits bound the number of such refusals.
        if let Some(reason) = context.refusal {
            return Step::Respond(self.refuse_undecided(&context.rules, reason, request));
        }
        let settings = &context.rules.settings;
        self.streaks
            .admitted(&context.keys, || settings.local.now());
        let (recorded, by) = (core::mem::take(&mut context.recorded), context.report.by);
        let record = (!recorded.is_empty())
            .then(|| ChargeRecord::new(self.settler(), by, decision, recorded));
        // From here on, a panic refunds the charges.
        let mut admission = Admission::new(record);
        let wait = decision.wait();
        let mut place = None;
        if !wait.is_zero() {
            let key = waiting_key(decision, &context.keys);
            // Take the place after the decision, because only the store knows whether the request
            // has to wait.
            place = self.queue.place(key);
            if place.is_none() {
                // Dropping the admission refunds the charges, because the request gets no turn.
                drop(admission);
                return Step::Respond(self.refuse_over_quota(without_turn(context), request));
            }
        }
        Flagged::attach(context.rules.plan.flagged(decision), request);
        let jitter = context.rules.plan.wait_jitter(decision);
        if settings.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
        self.observe(&context, None, request);
        match place {
            None => {
                admission.report(context);
                Step::Forward(admission)
            }
            Some(place) => {
                let wait = wait.saturating_add(random_up_to(jitter));
                Step::Wait(Stage::Queue {
                    wait,
                    place,
                    admission,
                    context,
                })
            }
        }
    }

    fn settler(self: &Arc<Self>) -> Arc<dyn Settler> {
        Arc::clone(self) as Arc<dyn Settler>
    }
}

fn waiting_key<'k>(decision: &Decision, keys: &'k [(Name, Key<'static>)]) -> &'k Key<'static> {
    let longest = decision.enforced().max_by_key(|status| status.outcome);
    longest
        .and_then(|status| keys.iter().find(|(limit, _)| *limit == status.name))
        .map_or(const { &Key::EVERYONE }, |(_, key)| key)
}

/// Turns a wait without a place into a refusal with `Retry-After`.
///
/// The remaining units count the wait, so the figure is never too high.
pub(super) fn without_turn(mut context: Box<RequestContext>) -> Box<RequestContext> {
    let refused = context.report.decision.as_ref().map(|decision| {
        let statuses = decision.statuses().iter().map(|status| {
            let outcome = match status.outcome {
                Outcome::Wait(wait) => Outcome::Refuse(wait),
                outcome => outcome,
            };
            LimitStatus {
                outcome,
                taken: 0,
                ..*status
            }
        });
        Decision::from_statuses(Operation::Check, decision.at(), statuses)
    });
    context.report.decision = refused;
    context
}
