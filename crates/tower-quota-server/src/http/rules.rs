//! Documents as the server reads them.

use std::collections::{BTreeMap, BTreeSet};

use tower_quota::{Algorithm, Quota, RequestHead, key};
use tower_quota_rules::{
    CodeParts, CostText, Document, KeyRule, KeyText, LimitRule, Problems, Rules, SettleText,
};

/// The name of the cost of a call in documents.
const CALL: &str = "call";

/// The cost and the keys that a caller gives, in the extensions of the request.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) cost: u64,
    pub(crate) keys: BTreeMap<String, String>,
}

/// Reads a document. Pass this function to [`LiveOptions::read_with`](tower_quota_live::LiveOptions::read_with).
///
/// A limit without a `cost` takes the `cost` of a check, 1 by default. A limit `at once` counts 1. The key `code NAME` is the
/// value that a check gives by this name in `keys`.
///
/// # Errors
/// Returns all errors and warnings of the document, if there is an error.
pub fn read_rules(text: &str) -> Result<Rules, Problems> {
    let Ok(mut document) = Document::parse(text) else {
        // Find the other problems too.
        return Rules::parse(text);
    };
    let parts = parts(&document);
    let of_routes = document
        .routes
        .iter_mut()
        .flat_map(|route| &mut route.limits);
    for limit in document.limits.iter_mut().chain(of_routes) {
        if limit.cost.is_none() && !is_hold(limit) {
            limit.cost = CALL.parse().ok().map(CostText::Code);
        }
    }
    // The text has the places of problems.
    Rules::with(document, &parts).or_else(|_| Rules::parse_with(text, &parts))
}

/// Returns the parts of a document that come from calls.
fn parts(document: &Document) -> CodeParts {
    let mut names = BTreeSet::new();
    if let Some(key) = &document.defaults.key {
        add_names(key, &mut names);
    }
    for limit in document.all_limits() {
        if let Some(key) = &limit.key {
            add_names(key, &mut names);
        }
        let degraded = limit.when_degraded.as_ref();
        if let Some(KeyText::Code(name)) = degraded.and_then(|degraded| degraded.key.as_ref()) {
            names.insert(name.as_str());
        }
    }
    let cost = |head: &RequestHead<'_>| {
        head.extensions()
            .get()
            .map_or(1, |given: &Given| given.cost)
    };
    let mut parts = CodeParts::new().cost(CALL, cost);
    for name in names {
        let own = name.to_owned();
        let given = key::extension(own.clone(), move |given: &Given| {
            given.keys.get(&own).cloned()
        });
        parts = parts.key(name, given);
    }
    parts
}

fn add_names<'d>(key: &'d KeyRule, names: &mut BTreeSet<&'d str>) {
    match key {
        KeyRule::One(KeyText::Code(name)) => {
            names.insert(name.as_str());
        }
        KeyRule::One(_) => {}
        KeyRule::First(keys) | KeyRule::All { all: keys } => {
            for key in keys {
                add_names(key, names);
            }
        }
    }
}

fn is_hold(limit: &LimitRule) -> bool {
    Quota::from(limit.quota).algorithm() == Algorithm::Concurrent
}

/// Returns the limits of a document that gateways cannot have as your service would, with the fix.
///
/// ```
/// use tower_quota_server::http::{advice, read_rules};
///
/// let rules = read_rules("limits: [{ name: uploads, quota: 2 at once }]")?;
/// assert!(advice(rules.document())[0].starts_with("the limit \"uploads\" counts requests in progress"));
/// # Ok::<(), tower_quota_rules::Problems>(())
/// ```
#[must_use]
pub fn advice(document: &Document) -> Vec<String> {
    let mut advice = Vec::new();
    for limit in document.all_limits() {
        let problem = match &limit.settle {
            _ if is_hold(limit) => {
                "counts requests in progress, and a gateway that asks /v1/auth reports no end, so that a request holds \
                 nothing there: check these requests by /v1/check with `reserve`"
                    .to_owned()
            }
            Some(settle) if *settle != SettleText::Handler => format!(
                "settles by {settle}, and the server sees no response, so that a request keeps its estimate: check these \
                 requests by /v1/check with `reserve`, and commit their cost"
            ),
            _ => continue,
        };
        advice.push(format!("the limit {:?} {problem}", limit.name.as_str()));
    }
    advice
}
