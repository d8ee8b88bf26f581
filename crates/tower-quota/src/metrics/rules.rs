//! Metrics of rules: their version and age, the attempts to read them, and the changes that people make.
//!
//! `LiveRules` of the crate `tower-quota-rules` records them with its feature `metrics`. A service that reads rules from
//! a source of its own calls the same functions.

use ::metrics::{counter, gauge};

use super::stats::float;
use super::table;

/// Counts an attempt to read the rules from their source.
///
/// `version` is the version that the source has confirmed, changed or not; `None` if the attempt has failed and the old
/// rules stay. An alert on `tower_quota_rules_confirmed_timestamp_seconds` so finds rules that are stale.
pub fn record_reload(version: Option<u64>) {
    count_reload(if version.is_some() { OK } else { FAILED });
    if let Some(version) = version {
        gauge!(table::RULES_VERSION).set(float(version));
        gauge!(table::RULES_CONFIRMED).set(seconds_since_1970());
    }
}

/// Counts rules of the source that are invalid: the old ones stay in force, and the source does not confirm them.
pub fn record_rejected_rules() {
    count_reload(REJECTED);
}

/// Notes that rules of another version came into force.
pub fn record_applied_rules(version: u64) {
    gauge!(table::RULES_VERSION).set(float(version));
    gauge!(table::RULES_APPLIED).set(seconds_since_1970());
}

/// Counts a change that the audit log keeps, by its kind, such as `put` and `block`.
///
/// The kind is a label: it must be one of a few words of the code.
pub fn record_audit_event(kind: &'static str) {
    counter!(table::AUDIT_EVENTS, "kind" => kind).increment(1);
}

const OK: &str = "ok";
const REJECTED: &str = "rejected";
const FAILED: &str = "failed";

/// Counts an attempt. All series exist from the first attempt on, so that a rate sees the first failure.
fn count_reload(result: &str) {
    for known in [OK, REJECTED, FAILED] {
        counter!(table::RULES_RELOADS, "result" => known).increment(u64::from(known == result));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "operators compare it with the time of the scrape"
)]
fn seconds_since_1970() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
