use std::time::Instant;

use tower_quota_core::{Key, Name};

use super::rules::Rules;
use crate::response::Report;

/// A decided request, as its observers and its refusal read it.
pub(crate) struct RequestReport<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) report: &'a mut Report,
    /// The keys of the limits, if anything reads the keys.
    pub(crate) keys: &'a [(Name, Key<'static>)],
    /// When a sampled decision began.
    pub(crate) since: Option<Instant>,
}
