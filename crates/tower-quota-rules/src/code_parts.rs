use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use tower_quota::RequestHead;
use tower_quota::key::KeyExtractor;
use tower_quota::settle::Rule;
use tower_quota::when::Condition;

pub(crate) type CostOf = dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync;

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
    pub(crate) keys: HashMap<String, Arc<dyn KeyExtractor>>,
    pub(crate) costs: HashMap<String, Arc<CostOf>>,
    pub(crate) conditions: HashMap<String, Arc<dyn Condition>>,
    pub(crate) rules: HashMap<String, Arc<dyn Rule>>,
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
            .field("costs", &self.costs.keys())
            .field("conditions", &self.conditions.keys())
            .field("rules", &self.rules.keys())
            .finish()
    }
}
