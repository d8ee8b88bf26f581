//! Takes over the state of the store.

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::in_force::InForce;
use super::local_copy;
use super::shared::{Known, Shared};
use crate::error::Invalid;
use crate::metrics;
use crate::store::{RuleStoreError, StoreState};
use crate::time::Time;
use crate::version::Version;
use crate::wait::{Backoff, jittered, now, pause};
use tower_quota_rules::Rules;

/// The shortest time between two readings after announcements.
const BETWEEN_READINGS: Duration = Duration::from_millis(250);

/// Waits for an announcement. Announcements soon after the last reading are read together.
async fn next_change(
    changes: &mut watch::Receiver<()>,
    last: Instant,
) -> Result<(), watch::error::RecvError> {
    changes.changed().await?;
    pause(BETWEEN_READINGS.saturating_sub(last.elapsed())).await;
    changes.mark_unchanged();
    Ok(())
}

impl Shared {
    /// Follows the store until it is closed.
    pub(crate) async fn follow(self: Arc<Self>, mut changes: watch::Receiver<()>) {
        let (mut closing, mut backoff) = (self.closing.subscribe(), Backoff::default());
        loop {
            let last = now();
            let wait = if self.refresh().await {
                backoff.reset();
                if let Err(error) = self.report().await {
                    tracing::debug!(%error, "the counts of a shadow document are not shared");
                }
                jittered(self.options.poll)
            } else {
                backoff.next()
            };
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                // Without announcements the polls find changes.
                Ok(()) = next_change(&mut changes, last) => {}
                () = pause(wait) => {}
            }
        }
    }

    /// Asks the store, and takes over what has changed. Returns whether the store answered.
    pub(crate) async fn refresh(self: &Arc<Self>) -> bool {
        let mut known = self.known.lock().await;
        match self
            .take_over(&mut known)
            .await
            .unwrap_or_else(|error| Some(error.to_string()))
        {
            None => {
                if let (None, Some(in_force)) = (known.rejected, self.in_force.load().as_deref())
                    && !in_force.is_local_copy
                {
                    metrics::record_reload(Some(in_force.version.number));
                }
                if self.health.answered() {
                    tracing::info!(store = self.store.name(), "the store of the rules answers");
                }
                true
            }
            Some(error) => {
                known.is_doubtful = true;
                known.revision = None;
                metrics::record_reload(None);
                if self.health.failed(error.clone()) {
                    tracing::warn!(
                        error,
                        "the store of the rules is unavailable: the last good document stays in force"
                    );
                }
                false
            }
        }
    }

    /// Returns the failure of a part of the store, if the rest could be taken over.
    async fn take_over(
        self: &Arc<Self>,
        known: &mut Known,
    ) -> Result<Option<String>, RuleStoreError> {
        let Some(mut state) = self.store.state(known.revision).await? else {
            return Ok(None);
        };
        let in_force = self.in_force.load_full();
        let has_lost = state.has_lost(known.seen);
        let kept = if has_lost {
            self.blocks.all()
        } else {
            Vec::new()
        };
        if has_lost {
            tracing::warn!(
                store = self.store.name(),
                "the store has lost data: put the blocks back"
            );
            self.store.restore_blocks(&kept).await?;
        }
        let mut is_restored = false;
        if let Some(in_force) = &in_force
            && state.newest() < Some(in_force.version.number)
            && self.store.restore(&in_force.version).await?
        {
            is_restored = true;
            let version = in_force.version.number;
            tracing::warn!(
                version,
                store = self.store.name(),
                "the store has lost its rules: put them back"
            );
        }
        if has_lost || is_restored {
            state = self.store.state(None).await?.unwrap_or(state);
            if !state.blocks.know_all(&kept) {
                let reason = "it has lost its data again";
                return Err(RuleStoreError::unavailable(self.store.name(), reason));
            }
        }
        self.blocks.apply(core::mem::take(&mut state.blocks));
        let (revision, failure) = (state.revision, state.failure.take());
        self.take_documents(known, in_force.as_deref(), state)
            .await?;
        known.revision = Some(revision);
        // The first change of an empty store is no loss.
        known.seen = known.revision.filter(|revision| *revision > 0);
        known.is_doubtful = false;
        Ok(failure)
    }

    /// Puts the documents of a state in force.
    async fn take_documents(
        self: &Arc<Self>,
        known: &mut Known,
        in_force: Option<&InForce>,
        state: StoreState,
    ) -> Result<(), RuleStoreError> {
        let Some(number) = state.current else {
            return Ok(());
        };
        let confirmed = in_force.filter(|in_force| !in_force.is_local_copy);
        let old = confirmed.map(|in_force| &in_force.version);
        let mut current = self.newer(known, old, number).await?;
        // Asked until it has answered: the rejected document is not read again.
        if current.is_none() && in_force.is_none() && known.rejected == Some(number) {
            current = self.last_good(number).await?;
        }
        let old_shadow = in_force.and_then(|in_force| in_force.shadow.as_ref());
        let old = old_shadow.map(|(version, _)| version);
        let mut shadow = None;
        if let Some(number) = state.shadow {
            shadow = self.newer(known, old, number).await?;
            if shadow.is_none() && known.rejected != Some(number) {
                shadow = old_shadow.cloned();
            }
        }
        if current.is_some() || shadow.as_ref().map(|(version, _)| version) != old {
            self.install(known, in_force, current, shadow).await;
        }
        if known
            .rejected
            .is_none_or(|rejected| Some(rejected) != state.newest() && rejected != number)
        {
            known.rejected = None;
            self.health.is_valid();
        }
        Ok(())
    }

    /// Reads a document of the store, unless it is the old one or was rejected before.
    async fn newer(
        self: &Arc<Self>,
        known: &mut Known,
        old: Option<&Version>,
        number: u64,
    ) -> Result<Option<(Version, Rules)>, RuleStoreError> {
        let is_old = old.is_some_and(|old| old.number == number) && !known.is_doubtful;
        if is_old || known.rejected == Some(number) {
            return Ok(None);
        }
        let version = self
            .store
            .version(number)
            .await?
            .ok_or(RuleStoreError::UnknownVersion(number))?;
        if old == Some(&version) {
            return Ok(None);
        }
        match self.read_version(&version).await {
            Ok(rules) => Ok(Some((version, rules))),
            Err(invalid) => {
                self.reject(known, number, &invalid);
                Ok(None)
            }
        }
    }

    /// Returns the last valid version before an invalid one, for an instance that starts.
    async fn last_good(
        self: &Arc<Self>,
        before: u64,
    ) -> Result<Option<(Version, Rules)>, RuleStoreError> {
        for info in self.store.history(usize::MAX).await? {
            if info.number < before
                && let Some(version) = self.store.version(info.number).await?
                && let Ok(rules) = self.read_version(&version).await
            {
                return Ok(Some((version, rules)));
            }
        }
        Ok(None)
    }

    /// Replaces the policy in one step, and remembers the document for a restart.
    async fn install(
        self: &Arc<Self>,
        known: &mut Known,
        in_force: Option<&InForce>,
        current: Option<(Version, Rules)>,
        shadow: Option<(Version, Rules)>,
    ) {
        let is_new = current.is_some();
        let (since, is_local_copy) = match in_force {
            Some(in_force) if !is_new => (in_force.since, in_force.is_local_copy),
            _ => (Time::now(), false),
        };
        let old = in_force.map(|in_force| (in_force.version.clone(), in_force.rules.clone()));
        let Some((version, rules)) = current.or(old) else {
            return;
        };
        let next = InForce {
            version,
            rules,
            shadow,
            since,
            is_local_copy,
        };
        match self.put_in_force(next).await {
            Ok(()) if is_new => self.keep_copy().await,
            Ok(()) => {}
            Err((number, invalid)) => self.reject(known, number, &invalid),
        }
    }

    /// Compiles the policy and replaces the layer's. Without the shadow document, if they do not go together.
    pub(crate) async fn put_in_force(
        self: &Arc<Self>,
        mut next: InForce,
    ) -> Result<(), (u64, Invalid)> {
        let (before, number) = (self.number(), next.version.number);
        // A large policy takes a while to compile, and the old one to drop.
        let work = self.blocking(move |shared| {
            let mut failure = None;
            let rules = next.shadow.as_ref().map(|(_, rules)| rules);
            let policy = shared.policy(&next.rules, rules).or_else(|error| {
                let shadow = next.shadow.take().map(|(version, _)| version.number);
                failure = shadow.map(|shadow| (shadow, Invalid::Config(error)));
                shared.policy(&next.rules, None)
            });
            match policy {
                Ok(policy) => {
                    let author = next.version.author.clone();
                    (shared.options.on_document)(next.rules.document());
                    shared.handle.replace_policy(policy.version(number));
                    if let Some(counts) = &shared.options.counts {
                        let shadow = next.shadow.as_ref();
                        counts.follow(shadow.map(|(version, _)| version.number));
                    }
                    shared.in_force.store(Some(Arc::new(next)));
                    shared.health.applied();
                    tracing::info!(version = number, author, "rules are in force");
                }
                Err(error) => failure = Some((number, Invalid::Config(error))),
            }
            failure.map_or(Ok(()), Err)
        });
        let applied = work.await.unwrap_or_else(|invalid| Err((number, invalid)));
        let after = self.number();
        if after != before {
            metrics::record_applied_rules(after);
        }
        applied
    }

    fn reject(&self, known: &mut Known, number: u64, invalid: &Invalid) {
        known.rejected = Some(number);
        metrics::record_rejected_rules();
        self.health
            .rejected(format!("version {number} is invalid: {invalid}"));
        tracing::warn!(version = number, error = %invalid, "a document is invalid: the last good one stays in force");
    }

    async fn keep_copy(&self) {
        let (Some(path), Some(in_force)) = (&self.options.local_copy, self.in_force.load_full())
        else {
            return;
        };
        if let Err(error) = local_copy::write(path, &in_force.version).await {
            tracing::warn!(path = %path.display(), %error, "no local copy of the rules could be written");
        }
    }

    /// Puts the local copy in force, if there is a good one.
    pub(crate) async fn start_from_copy(self: &Arc<Self>) {
        // A refresh that is still under way goes before.
        let mut known = self.known.lock().await;
        let Some(path) = &self.options.local_copy else {
            return;
        };
        if self.in_force.load().is_some() {
            return;
        }
        match self.read_copy(path).await {
            // A store that is empty gets it back when it is asked anew.
            Ok(()) => known.revision = None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the local copy of the rules cannot be used")
            }
        }
    }

    async fn read_copy(self: &Arc<Self>, path: &Path) -> Result<(), Invalid> {
        let read = local_copy::read(path).await;
        let version = read.map_err(|error| Invalid::Failed(error.to_string()))?;
        let rules = self.read_version(&version).await?;
        let next = InForce {
            version,
            rules,
            shadow: None,
            since: Time::now(),
            is_local_copy: true,
        };
        let applied = self.put_in_force(next).await;
        applied.map_err(|(_, invalid)| invalid)
    }
}
