use std::sync::{Arc, Mutex, PoisonError};

use super::policy::PolicyMetrics;

/// The metrics of replaced policies, under which some requests may still run.
#[derive(Default)]
pub(crate) struct ReplacedMetrics(Mutex<Vec<Arc<PolicyMetrics>>>);

impl ReplacedMetrics {
    pub(crate) fn add(&self, replaced: &Arc<PolicyMetrics>) {
        self.publish();
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(Arc::clone(replaced));
    }

    pub(crate) fn publish(&self) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain_mut(|replaced| {
            // If only the list holds the counters, their sums are final.
            let is_used = Arc::get_mut(replaced).is_none();
            replaced.publish();
            is_used
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::degraded::OnStoreFailure;

    #[test]
    fn replaced_policy_stays_while_requests_use_it() {
        let replaced = ReplacedMetrics::default();
        let of_request = Arc::new(PolicyMetrics::new([].into_iter()));
        replaced.add(&of_request);
        replaced.publish();
        of_request.degraded(OnStoreFailure::Allow);
        assert_eq!(replaced.0.lock().unwrap().len(), 1);
        drop(of_request);
        replaced.publish();
        assert!(replaced.0.lock().unwrap().is_empty());
    }
}
