//! Compiles documents, off the runtime's threads: a large one takes seconds.

use std::sync::Arc;

use tower_quota::{ConfigError, Policy, RequestHead, Store};

use super::shared::Shared;
use crate::live::blocks::BlockKeys;
use crate::live::error::Invalid;
use crate::live::rollout::{Rollout, client_key, is_chosen};
use crate::live::store::Candidate;
use crate::live::version::Version;
use crate::{Rules, compile};

impl<S: Store> Shared<S> {
    /// Reads the document of a version.
    pub(crate) async fn read(&self, version: &Version) -> Result<Rules, Invalid> {
        let (reader, text, format) = (
            Arc::clone(&self.options.reader),
            version.text.clone(),
            version.format,
        );
        let read = tokio::task::spawn_blocking(move || reader(&text, format)).await;
        read.map_err(|error| Invalid::Failed(error.to_string()))?
            .map_err(Invalid::Problems)
    }

    /// Compiles the policy of a document, and of one that is rolled out beside it.
    pub(crate) fn policy(
        &self,
        rules: &Rules,
        beside: Option<(Candidate, &Rules)>,
    ) -> Result<Policy, ConfigError> {
        let policy = self.policy_of(rules);
        match beside {
            None => Ok(policy),
            Some((
                Candidate {
                    rollout: Rollout::DryRun,
                    ..
                },
                candidate,
            )) => policy.dry_run(candidate.policy()),
            Some((
                Candidate {
                    number,
                    rollout: Rollout::Percent(percent),
                },
                candidate,
            )) => {
                let key = client_key(&policy);
                let is_chosen = move |head: &RequestHead<'_>| {
                    key.as_ref()
                        .is_some_and(|key| is_chosen(&**key, head, percent))
                };
                Ok(policy.split(is_chosen, self.policy_of(candidate).version(number)))
            }
        }
    }

    fn policy_of(&self, rules: &Rules) -> Policy {
        let policy = (self.options.with_policy)(rules.policy());
        let client_ip = compile::client_ip(&rules.document().client_ip);
        let keys = BlockKeys {
            keys: policy.keys().into(),
            client_ip,
        };
        self.blocks.add_to(policy, keys)
    }
}
