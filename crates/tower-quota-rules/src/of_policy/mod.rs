//! Documents of policies: the other way round than `compile`.
//!
//! A policy that was compiled from a document carries it. Parts that code has added or built describe themselves, as
//! documents write them: `keys` reads those of keys, `conditions` those of conditions, `limits` puts limits together.

mod conditions;
mod error;
mod keys;
mod limits;

use tower_quota::{Described, OnStoreFailure, Policy};

pub use self::error::PolicyPrintError;
use self::keys::Addresses;
use crate::document::{Document, Match, StoreFailureRule};

/// Makes the document that says what a policy does.
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
/// use tower_quota_rules::{Document, Format};
///
/// let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key")));
/// let document = Document::try_from(&policy)?;
/// let text = document.to_text(Format::Yaml);
/// assert_eq!(text, "limits:\n  - { name: minute, quota: 100/minute, key: header x-api-key }\n");
/// # Ok::<(), tower_quota_rules::PolicyPrintError>(())
/// ```
///
/// # Errors
/// [`PolicyPrintError`] names the first part that no document can say.
impl TryFrom<&Policy> for Document {
    type Error = PolicyPrintError;

    fn try_from(policy: &Policy) -> Result<Self, PolicyPrintError> {
        let parts = policy.parts();
        let code = |part| {
            Err(PolicyPrintError::Code {
                place: "the policy".to_owned(),
                part,
            })
        };
        if parts.look_ups > 0 {
            return code("look-up");
        }
        if parts.is_split {
            return code("split");
        }
        let compiled_from = match &parts.choices[..] {
            [] => None,
            [Some(Described::Value(source))] if source.is::<Self>() => {
                source.downcast_ref::<Self>().cloned()
            }
            _ => return code("choice of limits"),
        };
        let mut printer = Printer {
            addresses: Addresses::of(compiled_from.as_ref()),
            has_default_key: compiled_from.is_some(),
            document: compiled_from.unwrap_or_default(),
        };
        let document = &mut printer.document;
        if document.instances.unwrap_or(1) != parts.instances {
            document.instances = Some(parts.instances);
        }
        let failure = document
            .defaults
            .on_store_failure
            .map_or(OnStoreFailure::Allow, OnStoreFailure::from);
        if failure != parts.on_store_failure {
            document.defaults.on_store_failure = Some(store_failure(parts.on_store_failure));
        }
        printer.document.allow = printer.list("allow", &parts.allowed)?;
        printer.document.block = printer.list("block", &parts.blocked)?;
        printer.document.skip = printer.list("skip", &parts.skipped)?;
        for limit in &parts.limits {
            let rule = printer.limit(limit)?;
            printer.document.limits.push(rule);
        }
        printer.document.client_ip = printer.addresses.into_rule(printer.document.client_ip);
        Ok(printer.document)
    }
}

/// A document, and what its parts must agree on.
struct Printer {
    document: Document,
    addresses: Addresses,
    /// True if the default key is settled: patterns of keys are compared with it.
    has_default_key: bool,
}

impl Printer {
    fn list(
        &mut self,
        name: &str,
        conditions: &[Option<Described>],
    ) -> Result<Vec<Match>, PolicyPrintError> {
        let place = format!("the list {name:?}");
        let mut all = Vec::new();
        for condition in conditions {
            all.extend(self.matches(condition.as_ref(), &place)?);
        }
        Ok(all)
    }
}

fn store_failure(choice: OnStoreFailure) -> StoreFailureRule {
    match choice {
        OnStoreFailure::Refuse => StoreFailureRule::Refuse,
        OnStoreFailure::Local => StoreFailureRule::Local,
        _ => StoreFailureRule::Allow,
    }
}
