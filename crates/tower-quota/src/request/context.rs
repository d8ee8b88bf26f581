use std::sync::Arc;

use http::Response;
use tower_quota_core::{Decision, Key, Name};

use super::rules::Rules;
use crate::degraded::Degraded;
use crate::policy::{Ask, Fallback};
use crate::response::{Reason, Report};
use crate::settle::{Counted, RecordedCharge};

/// The data of a request, boxed once, because stages pass the box on.
pub(crate) struct RequestContext {
    pub(crate) rules: Arc<Rules>,
    /// The keys of the limits, if the request may be refused or a listener exists.
    pub(crate) keys: Vec<(Name, Key<'static>)>,
    pub(crate) recorded: Vec<RecordedCharge>,
    /// The reason to refuse the request if the limits admit it.
    pub(crate) refusal: Option<Reason<'static>>,
    pub(crate) fallback: Fallback,
    pub(crate) report: Report,
}

impl RequestContext {
    pub(crate) fn new(rules: &Arc<Rules>, ask: &Ask<'_, '_>, needs_keys: bool) -> Box<Self> {
        let owned = |(limit, key): (Name, &Key<'_>)| (limit, key.to_static());
        let keys = if needs_keys {
            ask.parts().map(owned).collect()
        } else {
            Vec::new()
        };
        let report = Report {
            overrides: ask.overrides(),
            oversized: ask.oversized(),
            ..Report::default()
        };
        let (rules, fallback) = (Arc::clone(rules), Fallback::default());
        // `Box::write` builds the context on the heap, because contexts are large.
        Box::write(
            Box::new_uninit(),
            Self {
                rules,
                keys,
                recorded: Vec::new(),
                refusal: ask.refusal,
                fallback,
                report,
            },
        )
    }

    /// Attaches the decision and the mark `Degraded` to a response's extensions.
    ///
    /// Decisions of refusing inner layers stay.
    pub(crate) fn attach<B>(&mut self, response: &mut Response<B>) {
        let is_local = self.report.by == Counted::Locally;
        if is_local || self.report.decision.is_none() {
            response.extensions_mut().insert(Degraded);
        }
        let Some(decision) = &mut self.report.decision else {
            return;
        };
        if self.rules.settings.attaches_decision
            && response.extensions().get().is_none_or(Decision::is_allowed)
        {
            let mut attached = decision.clone();
            if !is_local {
                core::mem::swap(&mut attached, decision);
            }
            response.extensions_mut().insert(attached);
        }
    }
}
