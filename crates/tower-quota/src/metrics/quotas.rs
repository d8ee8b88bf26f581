use ::metrics::gauge;

use super::policy::MAX_LIMITS;
use super::stats::float;
use super::table;
use crate::limit::Limit;
use crate::policy::Plan;

/// Publishes the quotas of the limits in place of the quotas of an earlier plan.
///
/// A recorder keeps the series of earlier quotas, so they go to 0.
pub(crate) fn publish_quotas(before: Option<&Plan>, now: &Plan) {
    for limit in before.into_iter().flat_map(Plan::limits).take(MAX_LIMITS) {
        publish(limit, 0.0);
    }
    for limit in now.limits().take(MAX_LIMITS) {
        publish(limit, 1.0);
    }
}

#[expect(clippy::float_arithmetic, reason = "recorders keep gauges as floats")]
fn publish(limit: &Limit, is_in_force: f64) {
    let (name, quota) = (limit.name.as_str(), &limit.quota);
    let period = if limit.is_hold() {
        None
    } else {
        Some(quota.period().as_secs_f64())
    };
    let labels = [
        ("limit", name.to_owned()),
        ("algorithm", quota.algorithm().to_string()),
        ("units", quota.units().to_string()),
        (
            "period",
            period.map_or_else(String::new, |period| period.to_string()),
        ),
    ];
    gauge!(table::LIMIT_INFO, &labels).set(is_in_force);
    if let Some(period) = period {
        let rate = is_in_force * float(quota.units()) / period;
        gauge!(table::LIMIT_RATE, "limit" => name).set(rate);
    }
}
