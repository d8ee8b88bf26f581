use tower_quota_rules::{Difference, Format, Problems, TestReport};

use super::LiveRules;
use crate::audit::{Action, AuditRecord};
use crate::change::By;
use crate::error::ChangeError;
use crate::shadow::{ShadowReport, ShadowTotal};
use crate::store::{RuleStoreError, StoreState};
use crate::version::{NewVersion, Version, VersionInfo};

impl LiveRules {
    /// Puts a document in force on all instances, or makes it the shadow document.
    ///
    /// The change is refused unless the newest version is `expected`. The newest version is the
    /// shadow document, if there is one, or 0 for an empty store. A put removes the old shadow
    /// document. On return, the document is in force here. Other instances follow within two
    /// seconds.
    ///
    /// # Errors
    /// Returns [`ChangeError`] with all problems of the document, the conflict, or the store's failure.
    pub async fn put(
        &self,
        expected: Option<u64>,
        new: NewVersion,
    ) -> Result<Version, ChangeError> {
        let what = if new.is_shadow {
            Action::Shadow
        } else {
            Action::Put
        };
        let comment = new.comment.clone();
        let change = self.clone().replace(expected, new, what, comment);
        self.to_its_end(change).await?
    }

    /// Puts an old version in force again, as a new version, on all instances.
    ///
    /// In the history, its comment is `rollback to version N`, then your reason.
    ///
    /// # Errors
    /// Returns the errors of [`put`](Self::put), and [`RuleStoreError::UnknownVersion`] if the
    /// store has dropped the version.
    pub async fn rollback(
        &self,
        expected: Option<u64>,
        number: u64,
        by: impl Into<By>,
    ) -> Result<Version, ChangeError> {
        let (live, by) = (self.clone(), by.into());
        let change = async move {
            let old = live.version(number).await?;
            let old = old.ok_or(RuleStoreError::UnknownVersion(number))?;
            let mut comment = format!("rollback to version {number}");
            if !by.comment.is_empty() {
                comment = format!("{comment}: {}", by.comment);
            }
            let new = NewVersion::new(old.text, old.format, by.author).comment(comment);
            live.replace(expected, new, Action::Rollback, by.comment)
                .await
        };
        self.to_its_end(change).await?
    }

    /// Puts the shadow document with this number in force.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Conflict`] if the shadow document has changed.
    pub async fn promote(&self, shadow: u64, by: impl Into<By>) -> Result<(), ChangeError> {
        self.end_shadow(Action::Promote, shadow, by.into()).await
    }

    /// Removes the shadow document with this number.
    ///
    /// # Errors
    /// See [`promote`](Self::promote).
    pub async fn abandon(&self, shadow: u64, by: impl Into<By>) -> Result<(), ChangeError> {
        self.end_shadow(Action::Abandon, shadow, by.into()).await
    }

    async fn end_shadow(&self, what: Action, shadow: u64, by: By) -> Result<(), ChangeError> {
        let live = self.clone();
        let change = async move {
            let (store, current) = (&live.shared.store, live.stored().await?.current);
            let (before, after) = match what {
                Action::Promote => {
                    store.promote(shadow).await?;
                    (current, Some(shadow))
                }
                _ => {
                    store.abandon(shadow).await?;
                    (Some(shadow), current)
                }
            };
            live.shared.refresh().await;
            live.record(what, by, before, after).await;
            Ok(())
        };
        self.to_its_end(change).await?
    }

    /// Returns the differences between the shadow document and the document in force, on this
    /// instance.
    ///
    /// Returns `None` without a shadow document, or without
    /// [counts](crate::LiveOptions::shadow_counts).
    #[must_use]
    pub fn shadow(&self) -> Option<ShadowReport> {
        self.shared.options.counts.as_ref()?.report()
    }

    /// Returns the differences between the shadow document and the document in force, on all
    /// instances.
    ///
    /// Counts of other instances are at most a [poll](crate::LiveOptions::poll_every) old. With a
    /// store such as a file, you get only the counts of this instance. Returns `None` without a
    /// shadow document.
    ///
    /// # Errors
    /// See [`history`](Self::history).
    pub async fn shadow_of_all(&self) -> Result<Option<ShadowTotal>, RuleStoreError> {
        let Some(shadow) = self.state().shadow.map(|shadow| shadow.number) else {
            return Ok(None);
        };
        self.shared.report().await?;
        let reports = self.shared.store.reports(shadow).await?;
        let own = self
            .shadow()
            .filter(|own| own.version == shadow && own.requests > 0);
        Ok(Some(match own {
            Some(own) if reports.is_empty() => ShadowTotal::of(shadow, &[own]),
            _ => ShadowTotal::of(shadow, &reports),
        }))
    }

    /// Returns the latest versions without their texts, the newest first.
    ///
    /// # Errors
    /// Returns [`RuleStoreError`] if the store fails.
    pub async fn history(&self, most: usize) -> Result<Vec<VersionInfo>, RuleStoreError> {
        self.shared.store.history(most).await
    }

    /// Returns a version, unless the store has dropped it.
    ///
    /// # Errors
    /// See [`history`](Self::history).
    pub async fn version(&self, number: u64) -> Result<Option<Version>, RuleStoreError> {
        self.shared.store.version(number).await
    }

    /// Returns the latest audit records, the newest first.
    ///
    /// # Errors
    /// See [`history`](Self::history).
    pub async fn audit(&self, most: usize) -> Result<Vec<AuditRecord>, RuleStoreError> {
        self.shared.store.audit(most).await
    }

    /// Checks a document like [`put`](Self::put), without a change.
    ///
    /// Returns the warnings and the results of the document's tests.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] with all problems of the document.
    pub async fn check(
        &self,
        text: impl Into<String>,
        format: Format,
    ) -> Result<(Problems, TestReport), ChangeError> {
        let text = text.into();
        let check = self.shared.work(move |shared| {
            let rules = shared.read(&text, format)?;
            Ok((rules.warnings().clone(), rules.test()))
        });
        check.await?
    }

    /// Returns the first differences between two versions, and the number of further differences.
    ///
    /// The order is the order of
    /// [`Document::differences`](tower_quota_rules::Document::differences).
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] if a version is unreadable.
    pub async fn differences(
        &self,
        old: Version,
        new: Version,
        most: usize,
    ) -> Result<(Vec<Difference>, usize), ChangeError> {
        let compare = self.shared.work(move |shared| {
            let old = shared.read(&old.text, old.format)?;
            let new = shared.read(&new.text, new.format)?;
            let mut differences = old.document().differences(new.document());
            let more = differences.len().saturating_sub(most);
            differences.truncate(most);
            Ok((differences, more))
        });
        compare.await?
    }

    async fn replace(
        self,
        expected: Option<u64>,
        new: NewVersion,
        what: Action,
        comment: String,
    ) -> Result<Version, ChangeError> {
        let examined = self
            .shared
            .work(move |shared| shared.examine(&new).map(|()| new));
        let new = examined.await??;
        let before = self.stored().await?;
        let new = new.above(self.shared.number_and_hash().0);
        let version = self.shared.store.put(expected, new).await?;
        // Apply the change before its record, since recording may take a moment.
        self.shared.refresh().await;
        let by = || By::new(&version.author);
        if before.shadow.is_some() {
            let reason = format!("version {} took its place", version.number);
            let by = by().comment(reason);
            self.record(Action::Abandon, by, before.shadow, before.current)
                .await;
        }
        let by = by().comment(comment);
        self.record(what, by, before.current, Some(version.number))
            .await;
        Ok(version)
    }

    /// Returns the numbers of the documents in the store.
    ///
    /// # Errors
    /// See [`history`](Self::history).
    pub async fn stored(&self) -> Result<StoreState, RuleStoreError> {
        Ok(self.shared.store.state(None).await?.unwrap_or_default())
    }

    async fn record(&self, what: Action, by: By, before: Option<u64>, after: Option<u64>) {
        let [before, after] =
            [before, after].map(|number| number.map(|number| format!("version {number}")));
        let record = AuditRecord::new(what, by, "rules".to_owned(), [before, after]);
        self.shared.audit(record).await;
    }
}
