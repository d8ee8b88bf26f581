use std::sync::Arc;

use super::rules::Rules;
use crate::response::Report;

/// What the response of an admitted request needs.
pub(crate) struct ResponseContext {
    pub(crate) rules: Arc<Rules>,
    pub(crate) report: Report,
}

impl ResponseContext {
    pub(crate) fn new(rules: &Arc<Rules>, report: Report) -> Box<Self> {
        let rules = Arc::clone(rules);
        // `Box::write` builds the context on the heap, because contexts are large.
        Box::write(Box::new_uninit(), Self { rules, report })
    }
}
