use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use tower_quota::RequestHead;
use tower_quota::key::KeyExtractor;
use tower_quota::settle::Rule;
use tower_quota::when::Condition;

use crate::tier::Tier;

type Parts<T> = HashMap<String, Arc<T>>;

pub(crate) type CostOf = dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync;

pub(crate) type TierOf = dyn Fn(&RequestHead<'_>) -> Option<Tier> + Send + Sync;

/// Parts of rules from your code, by name. A document refers to them by `code NAME`.
///
/// ```
/// use tower_quota::key;
/// use tower_quota_rules::{CodeParts, Rules};
///
/// let parts = CodeParts::new().key("tenant", key::from_fn("tenant", |head| head.uri().host().map(String::from)));
/// let text = "limits: [{ name: minute, quota: 100/minute, key: code tenant }]";
/// let rules = Rules::parse_with(text, &parts)?;
/// # Ok::<(), tower_quota_rules::Problems>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct CodeParts {
    pub(crate) keys: Parts<dyn KeyExtractor>,
    pub(crate) claims: Parts<dyn KeyExtractor>,
    pub(crate) tiers: Parts<TierOf>,
    pub(crate) costs: Parts<CostOf>,
    pub(crate) conditions: Parts<dyn Condition>,
    pub(crate) rules: Parts<dyn Rule>,
}

impl CodeParts {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key, for `key: code NAME`.
    pub fn key(mut self, name: impl Into<String>, extractor: impl KeyExtractor) -> Self {
        self.keys.insert(name.into(), Arc::new(extractor));
        self
    }

    /// Adds a claim of the client's token, for `match: { claim: { NAME: pro } }`.
    ///
    /// Pass `tower_quota::key::jwt_claim` (feature `jwt`), which verifies the token, or an extractor that reads the
    /// claims from an [extension](tower_quota::key::extension) of your own layer.
    pub fn claim(mut self, name: impl Into<String>, extractor: impl KeyExtractor) -> Self {
        self.claims.insert(name.into(), Arc::new(extractor));
        self
    }

    /// Adds a tier, for `tier: code NAME` of an assignment.
    ///
    /// If your closure returns no tier, or a tier that the document does not have, the next assignment decides.
    ///
    /// ```
    /// use tower_quota_rules::{CodeParts, Tier};
    ///
    /// #[derive(Clone)]
    /// struct Account {
    ///     plan: String,
    /// }
    ///
    /// let parts = CodeParts::new().tier("plan", |head| {
    ///     let account = head.extensions().get::<Account>()?;
    ///     Some(Tier::new(account.plan.clone()))
    /// });
    /// ```
    pub fn tier(
        mut self,
        name: impl Into<String>,
        tier: impl Fn(&RequestHead<'_>) -> Option<Tier> + Send + Sync + 'static,
    ) -> Self {
        self.tiers.insert(name.into(), Arc::new(tier));
        self
    }

    /// Adds a cost, for `cost: code NAME`.
    pub fn cost(
        mut self,
        name: impl Into<String>,
        cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.costs.insert(name.into(), Arc::new(cost));
        self
    }

    /// Adds a condition, for `match: { code: NAME }`.
    pub fn condition(mut self, name: impl Into<String>, condition: impl Condition) -> Self {
        self.conditions.insert(name.into(), Arc::new(condition));
        self
    }

    /// Adds a settlement rule, for `settle: code NAME`.
    pub fn settle(mut self, name: impl Into<String>, rule: impl Rule) -> Self {
        self.rules.insert(name.into(), Arc::new(rule));
        self
    }
}

impl fmt::Debug for CodeParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeParts")
            .field("keys", &self.keys.keys())
            .field("claims", &self.claims.keys())
            .field("tiers", &self.tiers.keys())
            .field("costs", &self.costs.keys())
            .field("conditions", &self.conditions.keys())
            .field("rules", &self.rules.keys())
            .finish()
    }
}
