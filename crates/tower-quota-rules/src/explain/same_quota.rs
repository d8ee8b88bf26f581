use tower_quota::{Algorithm, Quota};

use crate::document::LimitRule;

/// Returns whether the expected quota of a limit counts like the quota found.
pub(super) fn is_quota(rule: &LimitRule, expected: &Quota, found: &Quota) -> bool {
    counts_like(&rule.counted(expected), found)
}

/// Returns whether two quotas make the same decisions. A bucket has several texts, such as
/// `60/minute` and `1/second burst 60`.
fn counts_like(one: &Quota, other: &Quota) -> bool {
    let numbers = |quota: &Quota| (quota.capacity(), quota.grain(), quota.refill());
    let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyBucket;
    let are_buckets = one.algorithm().is_bucket() && other.algorithm().is_bucket();
    let are_alike = numbers(one) == numbers(other) && is_queue(one) == is_queue(other);
    one == other || are_buckets && are_alike
}
