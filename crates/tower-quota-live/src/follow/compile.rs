//! Reads, tests and compiles documents off the runtime's threads, because a large document takes
//! seconds.

use std::sync::Arc;

use tower_quota::Policy;
use tower_quota_rules::Rules;

use super::shared::FollowedRules;
use crate::blocks::BlockKeys;
use crate::error::ChangeError;
use crate::version::Version;

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
        self.blocking(move |shared| shared.read_and_test(&text))
            .await?
    }

    pub(crate) fn read(&self, text: &str) -> Result<Rules, ChangeError> {
        (self.options.reader)(text).map_err(ChangeError::Invalid)
    }

    pub(crate) fn read_and_test(&self, text: &str) -> Result<Rules, ChangeError> {
        let rules = self.read(text)?;
        let tests = rules.test();
        if tests.is_passed() {
            Ok(rules)
        } else {
            Err(ChangeError::Refused(format!(
                "the document's own tests fail: {tests}"
            )))
        }
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
