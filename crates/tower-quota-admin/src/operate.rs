//! The operations of live rules, whatever store counts: handlers are not generic.

use core::pin::Pin;
use std::sync::Arc;

use tower_quota::metrics::{DecisionTotals, StoreLatency};
use tower_quota::{
    ChecksReport, ClientKey, Key, LimitStatus, Name, RequestHead, Store, TopWindow,
    policy::Explained, store::RefusalStats,
};
use tower_quota_live::{
    AuditRecord, Block, BlockTarget, By, ChangeError, InForce, LiveRules, LiveState, NewBlock,
    NewVersion, RuleStoreError, ShadowReport, ShadowTotal, StoreState, Target, TopList, Version,
    VersionInfo,
};
use tower_quota_rules::{Difference, Format, Problems, TestReport};

use crate::problem::Result;

/// An answer that is on its way.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The warnings and own tests of a document, or its problems.
pub(crate) type Checked = core::result::Result<(Problems, TestReport), Problems>;

/// The operations, shared by all handlers.
pub(crate) type Operations = Arc<dyn Operate>;

/// The operations of live rules and of their layer.
pub(crate) trait Operate: Send + Sync + 'static {
    fn state(&self) -> LiveState;
    fn in_force(&self) -> Option<Arc<InForce>>;
    fn stored(&self) -> Pending<'_, StoreState>;
    fn version(&self, number: u64) -> Pending<'_, Version>;
    fn history(&self, most: usize) -> Pending<'_, Vec<VersionInfo>>;
    fn audit(&self, most: usize) -> Pending<'_, Vec<AuditRecord>>;
    fn check(&self, text: String, format: Format) -> Pending<'_, Checked>;
    fn differences(
        &self,
        old: Version,
        new: Version,
        most: usize,
    ) -> Pending<'_, (Vec<Difference>, usize)>;
    fn put(&self, expected: Option<u64>, new: NewVersion) -> Pending<'_, Version>;
    fn rollback(&self, expected: Option<u64>, version: u64, by: By) -> Pending<'_, Version>;
    fn promote(&self, shadow: u64, by: By) -> Pending<'_, ()>;
    fn abandon(&self, shadow: u64, by: By) -> Pending<'_, ()>;
    fn shadow(&self) -> Option<ShadowReport>;
    fn shadow_of_all(&self) -> Pending<'_, Option<ShadowTotal>>;

    fn blocks(&self) -> Vec<Block>;
    fn block<'a>(&'a self, target: BlockTarget<'a>, new: NewBlock) -> Pending<'a, Block>;
    fn unblock<'a>(&'a self, id: &'a str, by: By) -> Pending<'a, Option<Block>>;
    fn block_target(&self, target: BlockTarget<'_>) -> Result<Target>;
    fn scopes(&self) -> Vec<String>;

    /// Returns the hash under which a key is shown.
    fn hash(&self, key: &Key<'_>) -> String;

    fn peek<'a>(&'a self, limit: &'a str, client: ClientKey<'a>) -> Pending<'a, LimitStatus>;
    fn reset<'a>(
        &'a self,
        limit: &'a str,
        client: ClientKey<'a>,
        by: By,
    ) -> Pending<'a, LimitStatus>;
    fn grant<'a>(
        &'a self,
        limit: &'a str,
        client: ClientKey<'a>,
        units: u64,
        by: By,
    ) -> Pending<'a, LimitStatus>;
    /// Returns the limits that count by a key that is written so, with the key.
    fn keys(&self, text: &str) -> Vec<(Name, Key<'static>)>;
    fn explain(&self, head: &RequestHead<'_>) -> Explained;
    fn top(&self, is_busy: bool, window: TopWindow) -> Pending<'_, TopList>;
    fn listed_key(&self, hash: &str, limit: Option<&str>) -> Option<Key<'static>>;
    fn refusal_stats(&self) -> RefusalStats;
    fn waiting(&self) -> usize;
    fn mistakes(&self) -> ChecksReport;
    fn totals(&self) -> Vec<DecisionTotals>;
    fn store_latency(&self) -> StoreLatency;
}

impl<S: Store> Operate for LiveRules<S> {
    fn state(&self) -> LiveState {
        Self::state(self)
    }

    fn in_force(&self) -> Option<Arc<InForce>> {
        Self::in_force(self)
    }

    fn stored(&self) -> Pending<'_, StoreState> {
        Box::pin(async move { Ok(self.store().state(None).await?.unwrap_or_default()) })
    }

    fn version(&self, number: u64) -> Pending<'_, Version> {
        Box::pin(async move {
            let version = Self::version(self, number).await?;
            Ok(version.ok_or(RuleStoreError::UnknownVersion(number))?)
        })
    }

    fn history(&self, most: usize) -> Pending<'_, Vec<VersionInfo>> {
        Box::pin(async move { Ok(Self::history(self, most).await?) })
    }

    fn audit(&self, most: usize) -> Pending<'_, Vec<AuditRecord>> {
        Box::pin(async move { Ok(Self::audit(self, most).await?) })
    }

    fn check(&self, text: String, format: Format) -> Pending<'_, Checked> {
        Box::pin(async move {
            match Self::check(self, text, format).await {
                Ok(checked) => Ok(Ok(checked)),
                Err(ChangeError::Invalid(problems)) => Ok(Err(problems)),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn differences(
        &self,
        old: Version,
        new: Version,
        most: usize,
    ) -> Pending<'_, (Vec<Difference>, usize)> {
        Box::pin(async move { Ok(Self::differences(self, old, new, most).await?) })
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Pending<'_, Version> {
        Box::pin(async move { Ok(Self::put(self, expected, new).await?) })
    }

    fn rollback(&self, expected: Option<u64>, version: u64, by: By) -> Pending<'_, Version> {
        Box::pin(async move { Ok(Self::rollback(self, expected, version, by).await?) })
    }

    fn promote(&self, shadow: u64, by: By) -> Pending<'_, ()> {
        Box::pin(async move { Ok(Self::promote(self, shadow, by).await?) })
    }

    fn abandon(&self, shadow: u64, by: By) -> Pending<'_, ()> {
        Box::pin(async move { Ok(Self::abandon(self, shadow, by).await?) })
    }

    fn shadow(&self) -> Option<ShadowReport> {
        Self::shadow(self)
    }

    fn shadow_of_all(&self) -> Pending<'_, Option<ShadowTotal>> {
        Box::pin(async move { Ok(Self::shadow_of_all(self).await?) })
    }

    fn blocks(&self) -> Vec<Block> {
        Self::blocks(self)
    }

    fn block<'a>(&'a self, target: BlockTarget<'a>, new: NewBlock) -> Pending<'a, Block> {
        Box::pin(async move { Ok(Self::block(self, target, new).await?) })
    }

    fn unblock<'a>(&'a self, id: &'a str, by: By) -> Pending<'a, Option<Block>> {
        Box::pin(async move { Ok(Self::unblock(self, id, by).await?) })
    }

    fn block_target(&self, target: BlockTarget<'_>) -> Result<Target> {
        Ok(Self::block_target(self, target)?)
    }

    fn scopes(&self) -> Vec<String> {
        Self::scopes(self)
    }

    fn hash(&self, key: &Key<'_>) -> String {
        self.key_hash(key)
    }

    fn peek<'a>(&'a self, limit: &'a str, client: ClientKey<'a>) -> Pending<'a, LimitStatus> {
        Box::pin(async move { Ok(self.handle().peek(limit, client).await?) })
    }

    fn reset<'a>(
        &'a self,
        limit: &'a str,
        client: ClientKey<'a>,
        by: By,
    ) -> Pending<'a, LimitStatus> {
        Box::pin(async move { Ok(Self::reset(self, limit, client, by).await?) })
    }

    fn grant<'a>(
        &'a self,
        limit: &'a str,
        client: ClientKey<'a>,
        units: u64,
        by: By,
    ) -> Pending<'a, LimitStatus> {
        Box::pin(async move { Ok(Self::grant(self, limit, client, units, by).await?) })
    }

    fn keys(&self, text: &str) -> Vec<(Name, Key<'static>)> {
        let limits = self.handle().limits().into_iter();
        let key = |limit: Name| Some((limit, self.handle().key(limit.as_str(), text).ok()?));
        limits.filter_map(key).collect()
    }

    fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.handle().explain(head)
    }

    fn top(&self, is_busy: bool, window: TopWindow) -> Pending<'_, TopList> {
        Box::pin(async move { Ok(Self::top(self, is_busy, window).await) })
    }

    fn listed_key(&self, hash: &str, limit: Option<&str>) -> Option<Key<'static>> {
        Self::listed_key(self, hash, limit)
    }

    fn refusal_stats(&self) -> RefusalStats {
        self.handle().refusal_stats()
    }

    fn waiting(&self) -> usize {
        self.handle().waiting()
    }

    fn mistakes(&self) -> ChecksReport {
        self.handle().mistakes()
    }

    fn totals(&self) -> Vec<DecisionTotals> {
        self.handle().decision_totals()
    }

    fn store_latency(&self) -> StoreLatency {
        self.handle().store_latency()
    }
}
