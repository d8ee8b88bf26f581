//! The documents in force on an instance.

use tower_quota::RequestHead;

use crate::Rules;
use crate::live::rollout::{Rollout, client_key, is_chosen};
use crate::live::store::Candidate;
use crate::live::time::Time;
use crate::live::version::Version;

/// The documents in force on an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InForce {
    /// The version in force.
    pub version: Version,
    /// Its rules.
    pub rules: Rules,
    /// The document that is rolled out beside it, with its rules.
    pub candidate: Option<(Candidate, Version, Rules)>,
    /// The instant since which the version is in force on this instance.
    pub since: Time,
    /// True if it was read from the local copy, and the store has not confirmed it yet.
    pub is_local_copy: bool,
}

impl InForce {
    /// Returns the rules that decide a request: during a roll-out to some clients, those of the candidate for these.
    #[must_use]
    pub fn rules_of(&self, head: &RequestHead<'_>) -> &Rules {
        match &self.candidate {
            Some((
                Candidate {
                    rollout: Rollout::Percent(percent),
                    ..
                },
                _,
                rules,
            )) if client_key(&self.rules.policy())
                .is_some_and(|key| is_chosen(&*key, head, *percent)) =>
            {
                rules
            }
            _ => &self.rules,
        }
    }
}
