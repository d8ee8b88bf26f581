//! A document to a policy.

mod key;

use tower_quota::{Limit, Name, Policy};

use crate::code_parts::CodeParts;
use crate::document::{Document, LimitRule};
use crate::problem::{Place, Problem};

/// Compiles a document that was checked.
pub(crate) fn compile(document: &Document, parts: &CodeParts) -> Result<Policy, Problem> {
    let mut policy = Policy::new();
    for (position, rule) in document.limits.iter().enumerate() {
        let refused = |error| Problem::error(Place::of("limits").index(position), error);
        policy = policy.try_limit(limit(document, parts, rule)).map_err(refused)?;
    }
    Ok(policy)
}

fn limit(document: &Document, parts: &CodeParts, rule: &LimitRule) -> Limit {
    let key = rule.key.as_ref().or(document.defaults.key.as_ref());
    Limit::new(Name::from(&rule.name), rule.quota.into()).by(key::extractor(key, parts))
}
