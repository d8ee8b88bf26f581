use core::error::Error;

use super::{Event, Observer};
use crate::observe::Decided;
use crate::request::Rules;

type ReadDecision = dyn Fn(&Decided<'_>) + Send + Sync;

type ReadError = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// Your closure for decisions.
pub(crate) struct OnDecision(pub(crate) Box<ReadDecision>);

/// Your closure for refusals, on a running layer.
pub(crate) struct OnRefusal(pub(crate) Box<ReadDecision>);

/// Your closure for failures of the store.
pub(crate) struct OnStoreError(pub(crate) Box<ReadError>);

impl Observer for OnDecision {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Decided { decided, .. } = event {
            (self.0)(decided);
        }
    }

    fn sees_admissions(&self) -> bool {
        true
    }

    fn reads_keys(&self) -> bool {
        true
    }
}

impl Observer for OnRefusal {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Decided { decided, .. } = event
            && decided.reason.is_some()
        {
            (self.0)(decided);
        }
    }

    fn reads_refused_keys(&self) -> bool {
        true
    }
}

impl Observer for OnStoreError {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Failed(failure) = event {
            (self.0)(failure.error);
        }
    }
}
