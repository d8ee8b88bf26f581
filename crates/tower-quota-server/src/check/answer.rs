//! The answer of a check.

use core::time::Duration;
use std::collections::BTreeMap;

use axum::body::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use tower_quota::settle::Reservation;
use tower_quota::{Decision, Degraded, LimitStatus, Outcome};

use super::reservations::Reserved;

#[derive(Serialize)]
pub(super) struct Answer {
    allowed: bool,
    /// The status for the client of the caller.
    status: u16,
    /// Whether the store did not decide.
    degraded: bool,
    /// The fields for the client of the caller.
    fields: BTreeMap<String, String>,
    limits: Vec<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The body for the client of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reservation: Option<Reserved>,
}

#[derive(Serialize)]
struct Limit {
    limit: String,
    capacity: u64,
    remaining: u64,
    taken: u64,
    full_after_ms: u64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    shadow: bool,
}

impl Answer {
    /// Returns the answer about a request that the layer has decided.
    pub(super) fn decided(response: &Response<Bytes>) -> Self {
        let status = match response.extensions().get::<Reservation>() {
            Some(_) => StatusCode::OK,
            None => response.status(),
        };
        let mut answer = Self::of(status, response.extensions().get());
        answer.degraded = response.extensions().get::<Degraded>().is_some();
        answer.fields = fields(response.headers());
        answer.problem = serde_json::from_slice(response.body()).ok();
        if answer.retry_after_ms.is_none() {
            let seconds = response.headers().get(header::RETRY_AFTER);
            let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            answer.retry_after_ms = seconds.map(|seconds: u64| seconds.saturating_mul(1_000));
        }
        answer
    }

    /// Returns the answer of a peek.
    pub(super) fn of(status: StatusCode, decision: Option<&Decision>) -> Self {
        let statuses = decision.map_or(&[][..], Decision::statuses);
        Self {
            allowed: status.is_success(),
            status: status.as_u16(),
            degraded: false,
            fields: BTreeMap::new(),
            limits: statuses.iter().map(Limit::of).collect(),
            retry_after_ms: decision.and_then(Decision::retry_after).map(millis),
            problem: None,
            reservation: None,
        }
    }
}

impl Limit {
    fn of(status: &LimitStatus) -> Self {
        let (outcome, retry) = match status.outcome {
            Outcome::Allow => ("allowed", None),
            Outcome::Wait(wait) => ("queued", Some(wait)),
            Outcome::Refuse(wait) => ("limited", Some(wait)),
            // The rest is `Never`, and outcomes that this version does not know.
            _ => ("never", None),
        };
        Self {
            limit: status.name.to_string(),
            capacity: status.limit,
            remaining: status.remaining(),
            taken: status.taken,
            full_after_ms: millis(status.reset_after()),
            outcome,
            retry_after_ms: retry.map(millis),
            shadow: status.is_shadow,
        }
    }
}

/// Returns the fields of the layer. Fields of the connection are between the caller and its client.
fn fields(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        if name == header::CONNECTION {
            continue;
        }
        let line = String::from_utf8_lossy(value.as_bytes());
        let field = fields.entry(name.to_string()).or_default();
        if !field.is_empty() {
            field.push_str(", ");
        }
        field.push_str(&line);
    }
    fields
}

/// Rounds up, so that a wait is never too short.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
