//! Replaces the metrics of `tower-quota` if the feature `metrics` is off.

pub(crate) const fn record_reload(_: Option<u64>) {}

pub(crate) const fn record_rejected_rules() {}

pub(crate) const fn record_applied_rules(_: u64, _: u64) {}

pub(crate) const fn record_audit_event(_: &'static str) {}
