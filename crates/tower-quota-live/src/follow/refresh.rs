//! Applies the state of the store.

use core::time::Duration;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower_quota::Policy;
use tower_quota_rules::{Problems, Rules};
use tracing::Instrument;

use super::in_force::InForce;
use super::local_copy::LocalCopy;
use super::shared::{FollowedRules, Known};
use super::state::Failure;
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::error::ChangeError;
use crate::metrics;
use crate::options::WithoutRules;
use crate::store::{BlockChanges, Point, RuleStoreError};
use crate::time::Time;
use crate::version::{Version, VersionInfo};
use crate::wait::{Backoff, jittered, now, pause};

const BETWEEN_READINGS: Duration = Duration::from_millis(250);

/// Waits for an announcement. Announcements soon after the last reading cause a single reading.
async fn next_change(
    changes: &mut watch::Receiver<()>,
    last: Instant,
) -> Result<(), watch::error::RecvError> {
    changes.changed().await?;
    pause(BETWEEN_READINGS.saturating_sub(last.elapsed())).await;
    changes.mark_unchanged();
    Ok(())
}

impl FollowedRules {
    pub(crate) async fn follow(self: Arc<Self>, mut changes: watch::Receiver<()>) {
        let (mut closing, mut backoff) = (self.closing.subscribe(), Backoff::default());
        loop {
            let last = now();
            let wait = if self.refresh().await {
                backoff.reset();
                jittered(self.options.poll)
            } else {
                backoff.next()
            };
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                // If an announcement is lost, the next poll finds the change.
                Ok(()) = next_change(&mut changes, last) => {}
                () = self.wake.notified() => {}
                () = pause(wait) => {}
            }
        }
    }

    /// Reads the store in a task, so that a late reading ends in order if the caller is dropped.
    pub(crate) fn begin_refresh(self: &Arc<Self>) -> JoinHandle<bool> {
        let shared = Arc::clone(self);
        tokio::spawn(async move { shared.refresh().await }.in_current_span())
    }

    pub(crate) async fn refresh(self: &Arc<Self>) -> bool {
        let mut known = self.known.lock().await;
        let failure = match self.take_over(&mut known).await {
            Ok(failure) => failure,
            Err(error) => Some(error.into()),
        };
        let Some(failure) = failure else {
            if let (None, Some(in_force)) = (&known.rejected, self.in_force.load().as_deref())
                && !in_force.is_local_copy
            {
                metrics::record_reload(Some(in_force.version.number));
            }
            if self.health.answered() {
                tracing::info!(store = self.store.name(), "the store of the rules answers");
            }
            let points = known.points;
            if !core::mem::replace(&mut known.is_copied, true)
                && let Some(points) = points
            {
                let removed = known.removed.clone();
                // Let changes go on while the copy is written.
                drop(known);
                self.keep_copy(points, removed).await;
            }
            return true;
        };
        known.is_doubtful = true;
        metrics::record_reload(None);
        let text = failure.text.clone();
        if self.health.failed(failure) {
            self.warn(&text);
        }
        false
    }

    pub(crate) fn warn(&self, problem: &str) {
        if self.in_force.load().is_some() {
            tracing::warn!("{problem}: the last good document stays in force");
            return;
        }
        let holds = match self.options.without_rules {
            None => "the start fails",
            Some(WithoutRules::Refuse) => "every request is refused",
            Some(WithoutRules::Fallback(_)) => "the fallback limits hold",
        };
        tracing::error!("{problem}: no rules are in force, {holds}");
    }

    /// Returns the failure of a part of the store, if the rest was applied.
    async fn take_over(
        self: &Arc<Self>,
        known: &mut Known,
    ) -> Result<Option<Failure>, RuleStoreError> {
        let sharing = async {
            self.share_held(known).await?;
            self.keep_records().await
        };
        let unshared = sharing.await.err();
        // Read everything after a failure, because the store may have lost data meanwhile.
        let revision = known.revision.filter(|_| !known.is_doubtful);
        let Some(mut state) = self.store.state(revision).await? else {
            return Ok(unshared.map(Failure::from));
        };
        if let (Some(points), false) = (known.points, known.is_doubtful)
            && state.have_left(points)
        {
            // Read everything, because the numbers and revisions come from another history.
            known.is_doubtful = true;
            state = self.store.state(None).await?.unwrap_or_default();
        }
        known.is_doubtful |= state.is_doubtful;
        state = self.put_back(known, state).await?;
        let (revision, points) = (state.revision, state.points());
        let failure = state.failure.take();
        let failure = failure.map(|text| Failure {
            text,
            is_silent: false,
        });
        if failure.is_none() {
            known.note_removals(&state.blocks, &self.blocks);
            self.apply_changes(core::mem::take(&mut state.blocks));
        }
        if let Some(number) = state.current {
            self.take_document(known, number).await?;
        }
        known.is_doubtful = false;
        if failure.is_none() {
            (known.revision, known.points) = (Some(revision), Some(points));
            known.is_copied = false;
        }
        Ok(failure.or(unshared.map(Failure::from)))
    }

    async fn take_document(
        self: &Arc<Self>,
        known: &mut Known,
        number: u64,
    ) -> Result<(), RuleStoreError> {
        let in_force = self.in_force.load_full();
        let old = in_force.as_deref();
        let old_document = old.map(|old| (old.version.clone(), old.rules.clone()));
        let mut current = self.document(known, old_document.as_ref(), number).await?;
        let is_confirmed = current.is_some();
        if current.is_none() {
            current = match old_document {
                // Keep the last good document after an invalid change.
                Some(old) => Some(old),
                None => self.last_good(number).await?,
            };
        }
        if let Some((version, rules)) = current {
            let is_new = old.is_none_or(|old| old.version != version);
            let next = InForce {
                version,
                rules,
                since: old
                    .filter(|_| !is_new)
                    .map_or_else(Time::now, |old| old.since),
                is_local_copy: !is_confirmed && old.is_some_and(|old| old.is_local_copy),
            };
            let after = next.version.clone();
            if !is_new {
                self.in_force.store(Some(Arc::new(next)));
            } else if let Some((version, invalid)) = self.put_in_force(next).await {
                self.reject(known, version, &invalid);
            } else if self.store.is_read_only() {
                self.audit_source(old.map(|old| &old.version), &after);
            }
        }
        let is_past = |rejected: &VersionInfo| rejected.number != number;
        if known.rejected.as_ref().is_none_or(is_past) {
            known.rejected = None;
            self.health.is_valid();
        }
        Ok(())
    }

    /// Writes the record of a change that was made at the source of the documents, such as a file.
    fn audit_source(self: &Arc<Self>, before: Option<&Version>, after: &Version) {
        if before.is_some_and(|before| before.hash == after.hash) {
            return;
        }
        let (shared, record) = (Arc::clone(self), AuditRecord::of_file(before, after));
        // Write the record in a task, because a silent store must not delay the rules.
        tokio::spawn(async move { shared.audit(record).await });
    }

    /// Returns a document of the store, unless it is rejected. Reuses an unchanged document.
    async fn document(
        self: &Arc<Self>,
        known: &mut Known,
        old: Option<&(Version, Rules)>,
        number: u64,
    ) -> Result<Option<(Version, Rules)>, RuleStoreError> {
        let is_rejected =
            |rejected: &Option<VersionInfo>| rejected.as_ref().is_some_and(|r| r.number == number);
        if !known.is_doubtful {
            if is_rejected(&known.rejected) {
                return Ok(None);
            }
            if old.is_some_and(|(version, _)| version.number == number) {
                return Ok(old.cloned());
            }
        }
        let version = self.store.version(number).await?;
        let version = version.ok_or(RuleStoreError::UnknownVersion(number))?;
        if old.is_some_and(|(old, _)| *old == version) {
            return Ok(old.cloned());
        }
        if known.rejected == Some(version.info()) {
            return Ok(None);
        }
        match self.read_version(&version).await {
            Ok(rules) => Ok(Some((version, rules))),
            Err(invalid) => {
                self.reject(known, version.info(), &invalid);
                Ok(None)
            }
        }
    }

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

    /// Compiles the policy and replaces the layer's policy. Returns the version that cannot be used.
    pub(crate) async fn put_in_force(
        self: &Arc<Self>,
        next: InForce,
    ) -> Option<(VersionInfo, ChangeError)> {
        let (before, info) = (self.number_and_hash(), next.version.info());
        // Work on a blocking thread. Compiling a large policy and dropping the old one take a
        // while.
        let work = self.blocking(move |shared| {
            let policy = shared.policy(&next.rules);
            let (number, author) = (next.version.number, next.version.author.clone());
            let change = shared.change_to(&next.rules).unwrap_or_default();
            // Call this before the policy counts, so that a regional store knows the shares.
            (shared.options.on_document)(next.rules.document());
            shared.handle.replace_policy(policy.version(number));
            shared.fates.applied(&next.version.info(), Time::now());
            shared.in_force.store(Some(Arc::new(next)));
            shared.health.applied();
            tracing::info!(version = number, author, "rules are in force");
            change
        });
        let number = info.number;
        let (failure, change) = match work.await {
            Ok(change) => (None, change),
            Err(error) => (Some((info, error)), Problems::default()),
        };
        for lost in &change {
            tracing::warn!(version = number, "{lost}");
        }
        let after = self.number_and_hash();
        if after != before {
            metrics::record_applied_rules(after.0, after.1);
        }
        failure
    }

    fn reject(&self, known: &mut Known, version: VersionInfo, invalid: &ChangeError) {
        metrics::record_rejected_rules();
        let problem = format!("version {} is invalid: {invalid}", version.number);
        self.warn(&problem);
        self.fates.rejected(&version, invalid.to_string());
        self.health.rejected(problem);
        // Remember the version, so that the next poll does not read and report it again.
        known.rejected = Some(version);
    }

    async fn keep_copy(&self, points: [Point; 2], removed: HashMap<String, Block>) {
        let (Some(path), Some(in_force)) = (&self.options.local_copy, self.in_force.load_full())
        else {
            return;
        };
        let (blocks, store) = (Arc::clone(&self.blocks), self.store.identity());
        let copy = move || LocalCopy {
            version: in_force.version.clone(),
            blocks: blocks.all(),
            removed,
            store,
            points,
        };
        let _alone = self.copying.lock().await;
        if let Err(error) = LocalCopy::write(copy, path).await {
            tracing::warn!(path = %path.display(), %error, "no local copy of the rules could be written");
        }
    }

    pub(crate) async fn prepare(self: &Arc<Self>) -> Result<(), ChangeError> {
        if self.options.without_rules.is_some() {
            self.blocking(Self::hold_without_rules).await?;
        }
        let Some(path) = &self.options.local_copy else {
            return Ok(());
        };
        // Say nothing at the first start, which has no copy yet.
        if path.exists()
            && let Err(error) = self.use_copy(path).await
        {
            tracing::warn!(path = %path.display(), %error, "the local copy of the rules cannot be used");
        }
        Ok(())
    }

    fn hold_without_rules(&self) {
        let policy = match &self.options.without_rules {
            Some(WithoutRules::Fallback(rules)) => self.policy(rules),
            _ => (self.options.with_policy)(Policy::new()).unavailable(),
        };
        self.handle.replace_policy(policy);
    }

    async fn use_copy(self: &Arc<Self>, path: &Path) -> Result<(), ChangeError> {
        let copy = LocalCopy::read(path).await;
        let copy = copy.map_err(|error| ChangeError::Refused(error.to_string()))?;
        let store = self.store.identity();
        if copy.store != store {
            let reason = format!(
                "it is a copy of {}, and this store is {store}: give each service its own file",
                copy.store
            );
            return Err(ChangeError::Refused(reason));
        }
        let rules = self.read_version(&copy.version).await?;
        self.blocks.apply(BlockChanges::all(copy.blocks));
        *self.known.lock().await = Known {
            points: Some(copy.points),
            removed: copy.removed,
            is_doubtful: true,
            is_copied: true,
            ..Known::default()
        };
        let next = InForce {
            version: copy.version,
            rules,
            since: Time::now(),
            is_local_copy: true,
        };
        match self.put_in_force(next).await {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}
