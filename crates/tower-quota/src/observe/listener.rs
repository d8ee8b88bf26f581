use core::error::Error;

use super::{Event, Observer};
use crate::decided::Decided;
use crate::request::Rules;

/// Your closure for decisions.
pub(crate) struct OnDecision(pub(crate) Box<dyn Fn(&Decided<'_>) + Send + Sync>);

/// Your closure for failures of the store.
pub(crate) struct OnStoreError(pub(crate) Box<dyn Fn(&(dyn Error + 'static)) + Send + Sync>);

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

impl Observer for OnStoreError {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Failed(failure) = event {
            (self.0)(failure.error);
        }
    }
}
