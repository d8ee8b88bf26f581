//! The requests of a world.

use tower_quota_core::{Charge, Key, Penalty, Quota};

use crate::LIMIT;

/// What a request has in addition to its charge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addition {
    None,
    AtMost,
    Shadow,
}

/// The option that all charges of the limit have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Plain,
    CountsRefusals,
    Penalised,
}

impl Kind {
    pub(super) fn charge<'a>(
        self,
        quota: &'a Quota,
        key: &'a Key<'a>,
        penalty: &'a Penalty,
    ) -> Charge<'a> {
        let charge = Charge::new(LIMIT, quota, key).refundable();
        match self {
            Self::Plain => charge,
            Self::CountsRefusals => charge.count_refusals(),
            Self::Penalised => charge.penalty(penalty),
        }
    }
}
