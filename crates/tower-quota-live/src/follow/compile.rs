//! Reads, tests and compiles documents off the runtime's threads, because a large document takes
//! seconds.

use std::sync::Arc;

use tower_quota::Policy;
use tower_quota_rules::{Problems, Rules};

use super::shared::FollowedRules;
use crate::audit::Action;
use crate::blocks::BlockKeys;
use crate::error::ChangeError;
use crate::rules::refuse_hidden_keys;
use crate::version::{NewVersion, Version};

/// The kinds of a user's work, each with a place of its own.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Change,
    Check,
}

impl FollowedRules {
    /// Runs a user's job on a blocking thread, one change at a time, and one check at a time.
    ///
    /// A change waits for no check, because it may be the rollback in an emergency. A job runs to
    /// its end even if the caller is dropped.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        job: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, ChangeError> {
        let place = Arc::clone(&self.places[kind as usize])
            .acquire_owned()
            .await;
        self.blocking(move |shared| {
            let _place = place;
            job(shared)
        })
        .await
    }

    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, ChangeError> {
        let shared = Arc::clone(self);
        let ended = tokio::task::spawn_blocking(move || job(&shared)).await;
        ended.map_err(|error| {
            ChangeError::Refused(format!("the document could not be read: {error}"))
        })
    }

    pub(super) async fn read_version(
        self: &Arc<Self>,
        version: &Version,
    ) -> Result<Rules, ChangeError> {
        let text = version.text.clone();
        self.blocking(move |shared| {
            let rules = shared.read(&text)?;
            Self::test(&rules)?;
            // Another program may still write a text that this one only reads.
            if shared.store.is_read_only() {
                shared.change_to(&rules)?;
            }
            Ok(rules)
        })
        .await?
    }

    pub(crate) fn read(&self, text: &str) -> Result<Rules, ChangeError> {
        (self.options.reader)(text).map_err(ChangeError::Invalid)
    }

    fn test(rules: &Rules) -> Result<(), ChangeError> {
        let tests = rules.test();
        match tests.is_passed() {
            true => Ok(()),
            false => Err(ChangeError::Refused(format!(
                "the document's own tests fail: {tests}"
            ))),
        }
    }

    /// Returns the warnings if these rules replace the rules in force.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] if the document is probably cut.
    pub(crate) fn change_to(&self, rules: &Rules) -> Result<Problems, ChangeError> {
        let Some(in_force) = self.in_force.load_full() else {
            return Ok(Problems::default());
        };
        let problems = self.change(&in_force.rules, rules);
        if problems.has_errors() {
            return Err(ChangeError::Invalid(problems));
        }
        Ok(problems)
    }

    pub(crate) fn change(&self, old: &Rules, new: &Rules) -> Problems {
        let overrides = self.blocks.in_force(true);
        new.after(old, &|name| {
            let of_limit = overrides
                .iter()
                .filter(|block| block.kind.limit() == Some(name));
            of_limit.count()
        })
    }

    pub(crate) fn examine(&self, new: &NewVersion, what: Action) -> Result<(), ChangeError> {
        let rules = self.read(&new.text)?;
        // An earlier version is complete, even if it has no last line that says so.
        if what != Action::Rollback {
            refuse_hidden_keys(rules.document())?;
            self.change_to(&rules)?;
        }
        Self::test(&rules)
    }

    pub(super) fn policy(&self, rules: &Rules) -> Policy {
        let policy = (self.options.with_policy)(rules.policy());
        let keys = BlockKeys {
            keys: policy.keys().into(),
            client_ip: rules.client_ip(),
        };
        self.blocks.add_to(policy, keys)
    }
}
