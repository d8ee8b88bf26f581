use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Key, LimitStatus, Name, Operation, Outcome, RefusalCheck, Store};

use super::admission::Admission;
use super::shared::LayerState;
use super::stage::{Stage, Step};
use crate::head::RequestHead;
use crate::limit::Flagged;
use crate::observe::Decided;
use crate::observe::Event;
use crate::observe::now;
use crate::policy::{Charges, Explained, LookUps, Plan, RequestCharges};
use crate::random::random_up_to;
use crate::request::{RequestContext, ResponseContext, Rules, Waiter};
use crate::response::{Reason, Report};
use crate::settle::{ChargeRecord, Counted, InFlight, Settler};
use crate::traced::CallSpan;

impl<S: Store> LayerState<S> {
    #[inline]
    pub(super) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Step<S> {
        let rules = &self.rules();
        if rules.plan.begins_with_limits {
            self.charge(rules, request)
        } else {
            self.look_up(rules, request)
        }
    }

    #[inline(never)]
    fn look_up<B>(self: &Arc<Self>, rules: &Arc<Rules>, request: &mut Request<B>) -> Step<S> {
        let notes = rules.watch.notes();
        let head = RequestHead::of(request).with_notes(notes.as_ref());
        let listed = rules.plan.lists.find(&head);
        if let Some(notes) = &notes {
            rules.watch.read(notes, &head);
        }
        match listed {
            Some(Explained::Refused(reason)) => {
                Step::Respond(self.refuse_undecided(rules, reason, request))
            }
            Some(_) => Self::skip(rules, head),
            None if rules.plan.look_ups.is_empty() => self.charge(rules, request),
            None => {
                let look_ups = LookUps::begin(&rules.plan.look_ups, &head);
                Step::Wait(Stage::LookUp {
                    look_ups,
                    rules: Arc::clone(rules),
                })
            }
        }
    }

    fn skip(rules: &Rules, head: RequestHead<'_>) -> Step<S> {
        if rules.observers.see_admissions {
            rules.observers.notify(&Event::Skipped(head), rules);
        }
        Step::Forward(Admission::default())
    }

    /// Reads the limits of the request, and charges them.
    #[inline]
    pub(super) fn charge<B>(
        self: &Arc<Self>,
        rules: &Arc<Rules>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let notes = rules.watch.notes();
        let head = RequestHead::of(request).with_notes(notes.as_ref());
        let mut asked = RequestCharges::new(&rules.plan);
        asked.read(&head);
        let mark = match &notes {
            Some(notes) => rules.watch.examine(notes, &asked, &head, rules),
            None => None,
        };
        if asked.is_empty() {
            return match asked.refusal {
                Some(reason) => Step::Respond(self.refuse_undecided(rules, reason, request)),
                None => Self::skip(rules, head),
            };
        }
        // Look at the blocks before the store, so that a blocked client costs no call and takes no
        // unit.
        if let Some(blocks) = self.blocks.get()
            && asked.any_key(&head, |limit, key| blocks.has(limit, key))
        {
            return Step::Respond(self.refuse_undecided(rules, Reason::Blocked, request));
        }
        let mut charges = Charges::new();
        asked.fill(&mut charges, |waiter| self.queue.has_room(waiter));
        let since = match rules.observers.see_admissions {
            true => rules.observers.sample(),
            false => None,
        };
        // The decision stays in the report, because decisions are large.
        let mut report = Report::default();
        let decision = report.decision.insert(Decision::default());
        // A memory store answers here, without a future, a box or a wait.
        if !self.store.store().check_at_once(&charges, decision) {
            return match self.store.begin(&charges) {
                // A refusal from memory does not prove that the store is available.
                RefusalCheck::Refused(refusal) => {
                    *decision = refusal;
                    Step::Respond(self.refuse_at_once(rules, &asked, &mut report, None, request))
                }
                RefusalCheck::Sent {
                    answer,
                    known_refusal,
                } => {
                    report.decision = None;
                    asked.complete(&mut report);
                    let mut context = RequestContext::new(rules, &asked, report, mark);
                    context.since = since;
                    context.known_refusal = known_refusal.map(Box::new);
                    let recorded = match asked.refusal {
                        // Keep a record during the call, because the client may hang up before the answer.
                        None => rules.plan.record_in_flight(&charges),
                        Some(_) => Vec::new(),
                    };
                    let settings = &rules.settings;
                    let seed = settings.traces_calls.then_some(&settings.key_seed);
                    let span =
                        seed.map(|seed| CallSpan::begin(seed, rules.plan.version, &context.keys));
                    Step::Wait(Stage::Decide {
                        call: InFlight::new(answer, recorded, self.settler()),
                        start: now(),
                        span,
                        context,
                    })
                }
            };
        }
        if !decision.is_allowed() {
            return Step::Respond(self.refuse_at_once(rules, &asked, &mut report, since, request));
        }
        if rules.ends_with_decision && asked.refusal.is_none() {
            if rules.observers.see_admissions {
                let decided = Decided::admitted(rules, head, decision);
                let event = Event::Decided {
                    decided: &decided,
                    since,
                };
                rules.observers.notify(&event, rules);
            }
            let mut response = None;
            if rules.writes_fields {
                asked.complete(&mut report);
                response = Some(ResponseContext::new(rules, report));
            }
            return Step::Forward(Admission::new(response, None, mark));
        }
        asked.complete(&mut report);
        let mut context = RequestContext::new(rules, &asked, report, mark);
        context.recorded = rules.plan.record(&charges);
        context.since = since;
        // The charges borrow from the request, which moves on.
        drop(charges);
        drop(asked);
        self.decided(context, request)
    }

    /// Admits, delays or refuses a request that has a decision.
    pub(super) fn decided<B>(
        self: &Arc<Self>,
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let ResponseContext { rules, report } = &mut *context.response;
        let counted = Counted::of(report, rules);
        let Some(decision) = &mut report.decision else {
            // No caller comes here without a decision. If one did, the answer must not look like a success.
            return Step::Respond(self.refuse_undecided(rules, Reason::TooManyLimits, request));
        };
        rules.plan.delay(decision);
        if !decision.is_allowed() {
            return Step::Respond(self.refuse_over_quota(context.report(), request));
        }
        // Keep the charges, so that limits bound the number of such refusals.
        if let Some(reason) = context.refusal {
            return Step::Respond(self.refuse_undecided(rules, reason, request));
        }
        let mut recorded = core::mem::take(&mut context.recorded);
        let wait = decision.wait();
        let mut holds = Vec::new();
        if !wait.is_zero() {
            holds = recorded
                .extract_if(.., |recorded| recorded.is_hold())
                .collect();
            ChargeRecord::new(self.settler(), counted.clone(), decision, holds.clone()).give_back();
        }
        let record = (!recorded.is_empty())
            .then(|| ChargeRecord::new(self.settler(), counted, decision, recorded));
        // From here on, a panic refunds the charges.
        let mut admission = Admission::new(None, record, context.mark.take());
        let mut place = None;
        if !wait.is_zero() {
            let waiter = waiter(&rules.plan, decision, &context.keys);
            // Take the place after the decision, because only the store knows whether the request
            // has to wait.
            place = self.queue.place(&waiter);
            if place.is_none() {
                // Dropping the admission refunds the charges, because the request gets no turn.
                drop(admission);
                without_turn(decision);
                return Step::Respond(self.refuse_over_quota(context.report(), request));
            }
        }
        let mut flagged = rules.plan.flagged(decision);
        // The flags of concurrency limits follow when the turn comes.
        flagged.retain(|limit| holds.iter().all(|hold| hold.name() != *limit));
        if !flagged.is_empty() {
            Flagged::attach(flagged, request);
        }
        let jitter = rules.plan.wait_jitter(decision);
        if rules.settings.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
        // The observers see a request with holds when the turn comes.
        if holds.is_empty() {
            self.observe(&context.report(), None, request);
        }
        let Some(place) = place else {
            admission.report(context.response);
            return Step::Forward(admission);
        };
        Step::Wait(Stage::Queue {
            wait: wait.saturating_add(random_up_to(jitter)),
            place,
            admission,
            holds,
            context,
        })
    }

    pub(super) fn settler(self: &Arc<Self>) -> Arc<dyn Settler> {
        Arc::clone(self) as Arc<dyn Settler>
    }
}

/// Returns the limit with the longest wait, and its key.
fn waiter<'k>(plan: &Plan, decision: &Decision, keys: &'k [(Name, Key<'static>)]) -> Waiter<'k> {
    let longest = decision.enforced().max_by_key(|status| status.outcome);
    let found = longest.and_then(|status| keys.iter().find(|(limit, _)| *limit == status.name));
    match found {
        Some((limit, key)) => plan.waiter(*limit, key),
        None => Waiter {
            limit: None,
            key: const { &Key::EVERYONE },
        },
    }
}

/// Turns a wait without a place into a refusal with `Retry-After`.
///
/// The remaining units count the wait, so the figure is never too high.
pub(super) fn without_turn(decision: &mut Decision) {
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
    *decision = Decision::from_statuses(Operation::Check, decision.at(), statuses);
}
