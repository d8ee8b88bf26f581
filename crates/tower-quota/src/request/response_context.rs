use std::sync::Arc;

use http::Response;
use tower_quota_core::Decision;

use super::rules::Rules;
use crate::degraded::Degraded;
use crate::policy::RequestCharges;
use crate::response::Report;

/// What the response of an admitted request needs.
pub(crate) struct ResponseContext {
    pub(crate) rules: Arc<Rules>,
    pub(crate) report: Report,
}

impl ResponseContext {
    pub(crate) fn new(
        rules: &Arc<Rules>,
        asked: &RequestCharges<'_, '_>,
        decision: Option<Decision>,
    ) -> Box<Self> {
        // `Box::write` builds the context on the heap, because contexts are large.
        Box::write(
            Box::new_uninit(),
            Self {
                rules: Arc::clone(rules),
                report: Report {
                    decision,
                    overrides: asked.overrides(),
                    oversized: asked.oversized(),
                    ..Report::default()
                },
            },
        )
    }

    /// Attaches the decision and the mark `Degraded` to a response's extensions.
    ///
    /// Decisions of refusing inner layers stay.
    pub(crate) fn attach<B>(&mut self, response: &mut Response<B>) {
        let is_local = self.report.is_local;
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
