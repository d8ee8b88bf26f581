//! The published cases, in the format of the file.

use serde::Deserialize;
use serde_json::{Number, Value};

#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) unit: Unit,
    pub(crate) params: Value,
    pub(crate) steps: Vec<Value>,
}

/// The unit of the times in a case.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Ns,
    #[default]
    Ms,
    S,
}

/// A step of a case, in numbers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Step {
    /// `[t, cost, allowed, remaining, retry_after, reset_after, {extra}]`. Trailing columns may be missing.
    Request(Vec<Value>),
    Operation(Box<Operation>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) op: String,
    /// Names a reservation, for its cancellation.
    pub(crate) id: Option<String>,
    pub(crate) t: u64,
    #[serde(default)]
    pub(crate) n: u64,
    /// The most units to drain.
    pub(crate) max: Option<u64>,
    pub(crate) mode: Option<String>,
    /// The new limits, which replace the current limits.
    pub(crate) limits: Option<Vec<Limit>>,
    /// The new limit.
    pub(crate) limit: Option<u64>,
    /// The new rate.
    pub(crate) rate_per_s: Option<u64>,
    #[serde(default)]
    pub(crate) expect: Expected,
}

/// The expected result of an operation. The test does not compare missing fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) ok: Option<bool>,
    /// The instant at which a reservation may act.
    pub(crate) act: Option<u64>,
    pub(crate) got: Option<u64>,
    /// The remaining units. A negative number is a debt.
    pub(crate) rem: Option<i64>,
    pub(crate) retry: Option<u64>,
    pub(crate) wait: Option<u64>,
    /// An estimate, possibly with a fraction.
    pub(crate) value: Option<Number>,
}

/// A limit of a `token_bucket_multi` case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    pub(crate) cap: u64,
    /// Units per period, by default the capacity.
    pub(crate) refill: Option<u64>,
    pub(crate) period: u64,
    #[serde(default)]
    pub(crate) kind: Refill,
    /// Units at the start, by default the capacity.
    pub(crate) init: Option<u64>,
    /// The instant of the first complete refill.
    pub(crate) first: Option<u64>,
    #[serde(default)]
    pub(crate) adaptive: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Refill {
    /// A continuous refill.
    #[default]
    Greedy,
    /// A full refill at the end of each period.
    Interval,
}

/// Returns all cases, in the order of the file.
pub(crate) fn all() -> Vec<Case> {
    include_str!("cases.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
