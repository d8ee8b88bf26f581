//! Changes of documents.

use tower_quota::Store;

use super::LiveRules;
use crate::live::audit::{Action, AuditRecord};
use crate::live::change::By;
use crate::live::error::{ChangeError, Invalid};
use crate::live::rollout::{Rollout, RolloutReport, RolloutTotal};
use crate::live::store::{Candidate, RuleStoreError};
use crate::live::time::Time;
use crate::live::version::{NewVersion, Version, VersionInfo};
use crate::{Format, Rules};

impl<S: Store + 'static> LiveRules<S> {
    /// Puts a document in force, or beside the one in force, on all instances.
    ///
    /// It is checked first; an invalid one is not put. With `expected`, the newest version must still be that one: the
    /// candidate's if a roll-out is under way, which a put ends; 0 if there is none yet. When this returns, it is in force on this instance;
    /// the others follow within two seconds.
    ///
    /// # Errors
    /// [`ChangeError`] with all problems of the document, the conflict, or the store's failure.
    pub async fn put(
        &self,
        expected: Option<u64>,
        new: NewVersion,
    ) -> Result<Version, ChangeError> {
        let live = self.clone();
        let change = async move {
            let rollout = new.rollout;
            live.check(&new).await?;
            let before = live.number_before().await?;
            let new = new.above(live.shared.number());
            let version = live.shared.store.put(expected, new).await?;
            let what = if rollout.is_some() {
                Action::RollOut
            } else {
                Action::Put
            };
            live.changed(
                what,
                &version.author,
                &version.comment,
                before,
                Some(version.number),
            )
            .await;
            Ok(version)
        };
        self.to_its_end(change).await?
    }

    /// Puts an old version in force again, as a new version, on all instances.
    ///
    /// In the history its comment is `rollback to version N`, and after a colon the reason that is given.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`RuleStoreError::UnknownVersion`] if the version is not kept any more.
    pub async fn rollback(&self, number: u64, by: impl Into<By>) -> Result<Version, ChangeError> {
        let (live, by) = (self.clone(), by.into());
        let change = async move {
            let old = live
                .shared
                .store
                .version(number)
                .await?
                .ok_or(RuleStoreError::UnknownVersion(number))?;
            let reason = if by.comment.is_empty() {
                String::new()
            } else {
                format!(": {}", by.comment)
            };
            let comment = format!("rollback to version {number}{reason}");
            let new = NewVersion::new(old.text, old.format, by.author)
                .comment(comment)
                .above(live.shared.number());
            live.check(&new).await?;
            let before = live.number_before().await?;
            let version = live.shared.store.put(None, new).await?;
            live.changed(
                Action::Rollback,
                &version.author,
                &by.comment,
                before,
                Some(version.number),
            )
            .await;
            Ok(version)
        };
        self.to_its_end(change).await?
    }

    /// Puts the candidate of this number in force for all clients.
    ///
    /// # Errors
    /// [`RuleStoreError::Conflict`] if it is not the candidate any more.
    pub async fn promote(&self, candidate: u64, by: impl Into<By>) -> Result<(), ChangeError> {
        let (live, by) = (self.clone(), by.into());
        let change = async move {
            let before = live.number_before().await?;
            live.shared.store.promote(candidate).await?;
            live.changed(
                Action::Promote,
                &by.author,
                &by.comment,
                before,
                Some(candidate),
            )
            .await;
            Ok(())
        };
        self.to_its_end(change).await?
    }

    /// Ends the roll-out of the candidate of this number.
    ///
    /// # Errors
    /// As [`promote`](Self::promote).
    pub async fn abandon(&self, candidate: u64, by: impl Into<By>) -> Result<(), ChangeError> {
        let (live, by) = (self.clone(), by.into());
        let change = async move {
            let before = live.number_before().await?;
            live.shared.store.abandon(candidate).await?;
            live.changed(
                Action::Abandon,
                &by.author,
                &by.comment,
                Some(candidate),
                before,
            )
            .await;
            Ok(())
        };
        self.to_its_end(change).await?
    }

    /// Returns how the outcomes of the candidate differ on this instance.
    ///
    /// It is `None` without a roll-out, or without [counts](crate::live::LiveOptions::rollout_counts).
    #[must_use]
    pub fn rollout(&self) -> Option<RolloutReport> {
        self.shared.options.counts.as_ref()?.report()
    }

    /// Returns how the outcomes of the candidate differ on all instances that share the store.
    ///
    /// The counts of this instance are those of now, those of others at most a [poll](crate::live::LiveOptions::poll_every)
    /// old. With a store that instances do not share, such as a file, they are those of this instance. It is `None`
    /// without a roll-out.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub async fn rollout_of_all(&self) -> Result<Option<RolloutTotal>, RuleStoreError> {
        let Some(candidate) = self
            .state()
            .candidate
            .map(|candidate| candidate.version.number)
        else {
            return Ok(None);
        };
        self.shared.report().await?;
        let reports = self.shared.store.reports(candidate).await?;
        let own = self
            .rollout()
            .filter(|own| own.candidate == candidate && own.has_requests());
        Ok(Some(match own {
            Some(own) if reports.is_empty() => RolloutTotal::of(candidate, &[own]),
            _ => RolloutTotal::of(candidate, &reports),
        }))
    }

    /// Returns the latest versions without their texts, the newest first.
    ///
    /// # Errors
    /// [`RuleStoreError`] if the store fails.
    pub async fn history(&self, most: usize) -> Result<Vec<VersionInfo>, RuleStoreError> {
        self.shared.store.history(most).await
    }

    /// Returns one version; `None` if it is not kept.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub async fn version(&self, number: u64) -> Result<Option<Version>, RuleStoreError> {
        self.shared.store.version(number).await
    }

    /// Returns the latest audit records, the newest first.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub async fn audit(&self, most: usize) -> Result<Vec<AuditRecord>, RuleStoreError> {
        self.shared.store.audit(most).await
    }

    /// Reads, checks and compiles a document as [`put`](Self::put) does. Changes nothing.
    ///
    /// # Errors
    /// [`ChangeError::Invalid`] with all problems of the document.
    pub async fn read(
        &self,
        text: impl Into<String>,
        format: Format,
    ) -> Result<Rules, ChangeError> {
        Ok(self
            .shared
            .read(&Version::new(0, NewVersion::new(text, format, "")))
            .await?)
    }

    /// Checks a document, alone and beside the one in force.
    async fn check(&self, new: &NewVersion) -> Result<(), ChangeError> {
        let rules = self.shared.read(&Version::new(0, new.clone())).await?;
        let tests = rules.test();
        if !tests.is_passed() {
            return Err(refused(&format!("the document's own tests fail: {tests}")));
        }
        let Some(rollout) = new.rollout else {
            return Ok(());
        };
        let Some(in_force) = self.in_force() else {
            return Err(refused(
                "no document is in force yet: put one without a roll-out first",
            ));
        };
        match rollout {
            Rollout::Percent(1..=100) => {}
            Rollout::Percent(_) => {
                return Err(refused("a roll-out is for 1 to 100 percent of the clients"));
            }
            Rollout::DryRun if self.shared.options.counts.is_none() => {
                return Err(refused(
                    "a dry run shows nothing without `LiveOptions::rollout_counts`",
                ));
            }
            Rollout::DryRun => {}
        }
        let beside = Some((Candidate { number: 0, rollout }, &rules));
        let _ = self
            .shared
            .policy(&in_force.rules, beside)
            .map_err(Invalid::Config)?;
        Ok(())
    }

    async fn number_before(&self) -> Result<Option<u64>, RuleStoreError> {
        Ok(self
            .shared
            .store
            .state(None)
            .await?
            .and_then(|state| state.current))
    }

    async fn changed(
        &self,
        what: Action,
        who: &str,
        comment: &str,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        let version = |number: u64| format!("version {number}");
        let record = AuditRecord {
            time: Time::now(),
            who: who.to_owned(),
            what,
            target: "rules".to_owned(),
            before: before.map(version),
            after: after.map(version),
            comment: comment.to_owned(),
        };
        // The change is in force before it is logged in the store, which may take a moment.
        self.shared.refresh().await;
        self.shared.audit(record).await;
    }
}

fn refused(reason: &str) -> ChangeError {
    ChangeError::Refused(reason.to_owned())
}
