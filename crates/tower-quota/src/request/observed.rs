use std::sync::Arc;

use super::streaks::Streaks;
use crate::checks::{Checks, Watch};
#[cfg(feature = "top")]
use crate::clients::{BusyClients, RefusedClients};
use crate::degraded::OutageLog;
use crate::layer::Settings;
use crate::observe::Observer;
use crate::policy::Plan;
use crate::traced::Tracer;

/// What a layer has seen so far, also under earlier policies.
pub(crate) struct Observed {
    pub(crate) store: usize,
    pub(crate) checks: Arc<Checks>,
    pub(crate) streaks: Arc<Streaks>,
    pub(crate) outage: Arc<OutageLog>,
    #[cfg(feature = "top")]
    pub(crate) refused: Arc<RefusedClients>,
    #[cfg(feature = "top")]
    pub(crate) busy: Arc<BusyClients>,
}

impl Observed {
    pub(crate) fn new(store: usize, checks: Checks) -> Self {
        Self {
            store,
            checks: Arc::new(checks),
            streaks: Arc::default(),
            outage: Arc::default(),
            #[cfg(feature = "top")]
            refused: Arc::default(),
            #[cfg(feature = "top")]
            busy: Arc::default(),
        }
    }

    pub(super) fn watch(&self, limits: usize) -> Watch {
        Watch::new(Arc::clone(&self.checks), self.store, limits)
    }

    /// Returns the observers that the settings and the policy ask for.
    pub(super) fn observers(&self, settings: &Settings, plan: &Plan) -> Vec<Arc<dyn Observer>> {
        let mut observers: Vec<Arc<dyn Observer>> = vec![self.checks.clone(), self.outage.clone()];
        #[cfg(feature = "top")]
        {
            observers.push(self.refused.clone());
            if settings.counts_busy {
                observers.push(self.busy.clone());
            }
        }
        if plan.close_after.is_some() {
            observers.push(self.streaks.clone());
        }
        if let Some(admissions) = settings.traced_admissions {
            observers.push(Arc::new(Tracer(admissions)));
        }
        if let Some(listener) = &settings.on_decision {
            observers.push(listener.clone());
        }
        if let Some(listener) = &settings.on_refusal {
            observers.push(listener.clone());
        }
        if let Some(listener) = &settings.on_store_error {
            observers.push(listener.clone());
        }
        observers
    }
}
