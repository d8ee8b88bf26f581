use tower_quota_rules::{Difference, Document, Problems, Rules, TestReport};

use super::LiveRules;
use super::document_keys::refuse_hidden_keys;
use crate::audit::{Action, AuditRecord};
use crate::change::By;
use crate::error::ChangeError;
use crate::follow::{VersionFate, Work};
use crate::store::{RuleStoreError, StoreState};
use crate::version::{NewVersion, Version, VersionInfo};

/// The differences between two versions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VersionDifferences {
    /// The first differences.
    pub differences: Vec<Difference>,
    /// The number of further differences.
    pub more: usize,
    /// The names of the limits that the later version lacks.
    pub lost_limits: Vec<String>,
}

impl VersionDifferences {
    pub(super) fn between(old: &Document, new: &Document, most: usize) -> Self {
        let mut differences = old.differences(new);
        let more = differences.len().saturating_sub(most);
        differences.truncate(most);
        let lost_limits = old.lost_limits(new).into_iter().map(String::from);
        Self {
            differences,
            more,
            lost_limits: lost_limits.collect(),
        }
    }
}

impl LiveRules {
    /// Puts a document in force on all instances.
    ///
    /// The change is refused unless the newest version is `expected`, 0 for an empty store. On
    /// return, the document is in force here. Other instances follow within two seconds.
    ///
    /// # Errors
    /// Returns [`ChangeError`] with all problems of the document, the conflict, or the store's failure. A store that is
    /// [only read](crate::RuleStore::is_read_only) fails with [`RuleStoreError::ReadOnly`].
    pub async fn put(
        &self,
        expected: Option<u64>,
        new: NewVersion,
    ) -> Result<Version, ChangeError> {
        let comment = new.comment.clone();
        let change = self.clone().replace(expected, new, Action::Put, comment);
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
            let new = NewVersion::new(old.text, by.author).comment(comment);
            live.replace(expected, new, Action::Rollback, by.comment)
                .await
        };
        self.to_its_end(change).await?
    }

    /// Returns the latest versions without their texts, the newest first.
    ///
    /// # Errors
    /// Returns [`RuleStoreError`] if the store fails.
    pub async fn history(&self, most: usize) -> Result<Vec<VersionInfo>, RuleStoreError> {
        self.shared.store.history(most).await
    }

    /// Returns what this instance has done with a version since the start of the instance.
    #[must_use]
    pub fn fate(&self, version: &VersionInfo) -> VersionFate {
        self.shared.fate(version)
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
    /// Returns the warnings and the results of the document's tests. The warnings name the limits of the document in
    /// force that the new document lacks.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] with all problems of the document.
    pub async fn check(
        &self,
        text: impl Into<String>,
    ) -> Result<(Problems, TestReport), ChangeError> {
        let text = text.into();
        let check = self.shared.work(Work::Check, move |shared| {
            let rules = shared.read(&text)?;
            refuse_hidden_keys(rules.document())?;
            let change = shared.change_to(&rules)?;
            Ok((rules.warnings().clone().and(change), rules.test()))
        });
        check.await?
    }

    /// Returns the differences between two versions, of which at most `most` are listed.
    ///
    /// The order is the order of
    /// [`Document::differences`](tower_quota_rules::Document::differences). Keys of clients are
    /// [hidden](Self::hidden_document) unless the caller may read them.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] if a version is unreadable. Its problems may quote keys.
    pub async fn differences(
        &self,
        old: Version,
        new: Version,
        most: usize,
        reads_keys: bool,
    ) -> Result<VersionDifferences, ChangeError> {
        let live = self.clone();
        let compare = self.shared.work(Work::Check, move |shared| {
            let mut old = shared.read(&old.text)?.document().clone();
            let mut new = shared.read(&new.text)?.document().clone();
            if !reads_keys {
                live.hide_keys(&mut [&mut old, &mut new]);
            }
            Ok(VersionDifferences::between(&old, &new, most))
        });
        compare.await?
    }

    /// Returns the problems if rules replace others, with the operators' overrides of lost limits.
    #[must_use]
    pub fn problems_of_change(&self, old: &Rules, new: &Rules) -> Problems {
        self.shared.change(old, new)
    }

    async fn replace(
        self,
        expected: Option<u64>,
        new: NewVersion,
        what: Action,
        comment: String,
    ) -> Result<Version, ChangeError> {
        if self.shared.store.is_read_only() {
            return Err(RuleStoreError::ReadOnly(self.shared.store.name()).into());
        }
        let examined = self.shared.work(Work::Change, move |shared| {
            shared.examine(&new, what).map(|()| new)
        });
        let new = examined.await??;
        let before = self.stored().await?;
        let new = new.above(self.shared.number_and_hash().0);
        let version = self.shared.store.put(expected, new).await?;
        // Apply the change before its record, since recording may take a moment.
        self.shared.refresh().await;
        let by = By::new(&version.author).comment(comment);
        self.record(what, by, before.current, Some(version.number))
            .await;
        Ok(version)
    }

    /// Returns the state of the store.
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
