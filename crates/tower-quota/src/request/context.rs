use std::sync::Arc;
use std::time::Instant;

use tower_quota_core::{Decision, Key, Name};

use super::report::RequestReport;
use super::response_context::ResponseContext;
use super::rules::Rules;
use crate::checks::Mark;
use crate::head::RequestHead;
use crate::limit::Limit;
use crate::policy::{Fallback, RequestCharges};
use crate::response::{Reason, Report};
use crate::settle::RecordedCharge;

/// The data of a request that its decision does not end, boxed once, because stages pass the box on.
pub(crate) struct RequestContext {
    pub(crate) response: Box<ResponseContext>,
    /// The keys of the limits, if the request may wait, or anything reads the keys.
    pub(crate) keys: Vec<(Name, Key<'static>)>,
    pub(crate) recorded: Vec<RecordedCharge>,
    /// The reason to refuse the request if the limits admit it.
    pub(crate) refusal: Option<Reason<'static>>,
    /// The costs of the limits, in the order of the keys.
    pub(crate) costs: Vec<u64>,
    /// The refusal to use if the store fails.
    pub(crate) known_refusal: Option<Box<Decision>>,
    pub(crate) mark: Option<Box<Mark>>,
    /// When a sampled decision began.
    pub(crate) since: Option<Instant>,
}

impl RequestContext {
    /// Makes the context of an admitted request, or of a request that the store has yet to decide.
    pub(crate) fn new(
        rules: &Arc<Rules>,
        asked: &RequestCharges<'_, '_>,
        report: Report,
        mark: Option<Box<Mark>>,
    ) -> Box<Self> {
        // The answer of the store may be a refusal, a conversion or a failure.
        let is_open = report.decision.is_none();
        let needs_keys = is_open || rules.observers.read_keys || rules.plan.makes_wait;
        Box::new(Self {
            response: ResponseContext::new(rules, report),
            keys: if needs_keys { asked.keys() } else { Vec::new() },
            recorded: Vec::new(),
            refusal: asked.refusal,
            costs: if needs_keys {
                asked.costs()
            } else {
                Vec::new()
            },
            known_refusal: None,
            mark,
            since: None,
        })
    }

    /// Returns what these limits of the request do without the store.
    pub(crate) fn fallback(
        &self,
        head: &RequestHead<'_>,
        applies: impl Fn(&Limit) -> bool,
    ) -> Fallback {
        let ResponseContext { rules, report } = &*self.response;
        let mut fallback = Fallback::default();
        for ((limit, key), cost) in self.keys.iter().zip(&self.costs) {
            if rules.plan.limit(*limit).is_some_and(&applies) {
                let other = report.other_quota(*limit);
                fallback.add(&rules.plan, (*limit, key), *cost, other, head);
            }
        }
        if self.refusal.is_some() {
            // The request is refused anyway, so let it count by the local limits with a key of its own.
            fallback.refuses = false;
            fallback.leave_out_shared();
        }
        fallback
    }

    pub(crate) fn report(&mut self) -> RequestReport<'_> {
        let ResponseContext { rules, report } = &mut *self.response;
        RequestReport {
            rules,
            report,
            keys: &self.keys,
            since: self.since,
        }
    }
}
