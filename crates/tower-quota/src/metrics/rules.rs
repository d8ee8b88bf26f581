//! Records changes of rules, if you read rules without `LiveRules` of the crate `tower-quota-live`.

use ::metrics::{counter, gauge};

use super::stats::float;
use super::table;

/// Counts an attempt to read the rules from their source.
///
/// Pass the confirmed version, if any. Alert on `tower_quota_rules_confirmed_timestamp_seconds` to find stale rules.
pub fn record_reload(version: Option<u64>) {
    count_reload(if version.is_some() { OK } else { FAILED });
    if let Some(version) = version {
        gauge!(table::RULES_VERSION).set(float(version));
        gauge!(table::RULES_CONFIRMED).set(seconds_since_1970());
        gauge!(table::RULES_REJECTED).set(0.0);
    }
}

/// Counts invalid rules from the source. The old rules stay in force, unconfirmed.
pub fn record_rejected_rules() {
    count_reload(REJECTED);
    gauge!(table::RULES_REJECTED).set(1.0);
}

/// Records the version of rules that came into force, and a hash of their text.
///
/// Alerts compare the hashes of your instances. The gauge has the lower 48 bits, which a float holds exactly.
pub fn record_applied_rules(version: u64, hash: u64) {
    gauge!(table::RULES_VERSION).set(float(version));
    gauge!(table::RULES_HASH).set(float(hash & 0xffff_ffff_ffff));
    gauge!(table::RULES_APPLIED).set(seconds_since_1970());
}

/// Counts a change in the audit log by kind, such as `put` or `block`.
///
/// The kind is a label, so pass few constant words.
pub fn record_audit_event(kind: &'static str) {
    counter!(table::AUDIT_EVENTS, "kind" => kind).increment(1);
}

/// Counts a request of the admin API by the role of its token, such as `read`, and the status of the answer.
///
/// Both are labels, so pass few constant words.
pub fn record_admin_request(role: &'static str, status: u16) {
    counter!(table::ADMIN_REQUESTS, "role" => role, "status" => status.to_string()).increment(1);
}

/// Counts a request of the admin API that shows readable keys, by the role of its token.
pub fn record_shown_keys(role: &'static str) {
    counter!(table::ADMIN_SHOWN_KEYS, "role" => role).increment(1);
}

const OK: &str = "ok";
const REJECTED: &str = "rejected";
const FAILED: &str = "failed";
/// The kind of audit records about changes that the store had lost.
const RESTORED: &str = "restored";

/// Creates all series at the first call, so that a rate sees the first failure. The version is 0
/// before the first rules.
fn count_reload(result: &str) {
    gauge!(table::RULES_VERSION).increment(0.0);
    counter!(table::AUDIT_EVENTS, "kind" => RESTORED).increment(0);
    gauge!(table::RULES_REJECTED).increment(0.0);
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
