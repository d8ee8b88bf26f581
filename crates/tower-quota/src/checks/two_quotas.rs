//! Finds limits of two layers that count the same key with different quotas.

use std::sync::{Arc, Weak};

use tower_quota_core::{Lock, Name};

use crate::request::Rules;

/// The rules of all watched layers of this process.
static WATCHED: Lock<Vec<Weak<Rules>>> = Lock::new(Vec::new());

/// Registers the rules of a layer. Returns the limits with another quota in an earlier layer.
pub(super) fn conflicts(rules: &Arc<Rules>) -> Vec<Name> {
    let mut watched = WATCHED.lock();
    let (mut conflicts, mut upgraded) = (Vec::new(), Vec::new());
    watched.retain(|earlier| {
        let Some(earlier) = earlier.upgrade() else {
            return false;
        };
        // Drop the rules after the lock, because the policy's closures may be dropped with them.
        upgraded.push(Arc::clone(&earlier));
        if rules.watch.is_of_same_layer(&earlier.watch) {
            return false;
        }
        if rules.watch.is_of_same_store(&earlier.watch) && !are_versions(rules, &earlier) {
            add_conflicts(rules, &earlier, &mut conflicts);
        }
        true
    });
    watched.push(Arc::downgrade(rules));
    drop(watched);
    conflicts
}

/// Returns whether the rules are two versions of live rules, which reach the layers one after the other.
fn are_versions(rules: &Rules, earlier: &Rules) -> bool {
    let (version, other) = (rules.plan.version, earlier.plan.version);
    version.is_some() && other.is_some() && version != other
}

fn add_conflicts(rules: &Rules, earlier: &Rules, conflicts: &mut Vec<Name>) {
    for limit in rules.plan.limits() {
        let Some(other) = earlier.plan.limit(limit.name) else {
            continue;
        };
        let is_conflict = other.name == limit.name
            && other.extractor.scope() == limit.extractor.scope()
            && other.quota != limit.quota
            && !limit.has_run_time_quota()
            && !other.has_run_time_quota();
        if is_conflict && !conflicts.contains(&limit.name) {
            conflicts.push(limit.name);
        }
    }
}
