//! Documents as the server reads them.

use tower_quota::{Algorithm, Quota};
use tower_quota_rules::{CostText, Document, LimitRule, Problems, Rules, SettleText};

/// The field with the cost of a call, which only the server sets.
pub(crate) const COST: &str = "tower-quota-cost";

/// Reads a document. Pass this function to [`LiveOptions::read_with`](tower_quota_live::LiveOptions::read_with).
///
/// A limit without a `cost` takes the `cost` of a check, 1 by default. A limit `at once` counts 1.
///
/// # Errors
/// Returns all errors and warnings of the document, if there is an error.
pub fn read_rules(text: &str) -> Result<Rules, Problems> {
    let rules = Rules::parse(text)?;
    let mut document = rules.document().clone();
    let of_routes = document
        .routes
        .iter_mut()
        .flat_map(|route| &mut route.limits);
    let mut takes_cost = false;
    for limit in document.limits.iter_mut().chain(of_routes) {
        if limit.cost.is_none() && !is_hold(limit) {
            limit.cost = cost_of_call();
            takes_cost = true;
        }
    }
    match takes_cost {
        true => Rules::new(document),
        false => Ok(rules),
    }
}

fn cost_of_call() -> Option<CostText> {
    let name = COST.parse().ok()?;
    Some(CostText::Header { name, default: 1 })
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
        let name = limit.name.as_str();
        if is_hold(limit) {
            advice.push(format!(
                "the limit {name:?} counts requests in progress, and a gateway that asks /v1/auth reports no end, so that a \
                 request holds nothing there: check these requests by /v1/check with `reserve`"
            ));
        } else if let Some(settle) = limit
            .settle
            .as_ref()
            .filter(|settle| **settle != SettleText::Handler)
        {
            advice.push(format!(
                "the limit {name:?} settles by {settle}, and the server sees no response, so that a request keeps its \
                 estimate: check these requests by /v1/check with `reserve`, and commit their cost"
            ));
        }
    }
    advice
}
