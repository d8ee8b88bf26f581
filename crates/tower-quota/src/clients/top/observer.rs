use super::TopClients;
use crate::observe::now;
use crate::observe::{Event, Observer};
use crate::request::Rules;

/// One request in this number is counted for the busiest clients.
const SAMPLE: u32 = 32;

/// Counts refusals by client.
#[derive(Default)]
pub(crate) struct RefusedClients(pub(crate) TopClients);

/// Counts a sample of the requests by client.
#[derive(Default)]
pub(crate) struct BusyClients(pub(crate) TopClients);

impl Observer for RefusedClients {
    fn observe(&self, event: &Event<'_>, rules: &Rules) {
        let Event::Decided { decided, .. } = event else {
            return;
        };
        if decided.reason.is_some()
            && let Some((limit, key)) = decided.refused_client()
        {
            let now = now();
            let wait = decided.retry_after().unwrap_or_default();
            let until = now.checked_add(wait).unwrap_or(now);
            let at = (until > now).then(|| rules.settings.local.now());
            self.0.count(limit, key, 1, now, until, at);
        }
    }

    fn reads_refused_keys(&self) -> bool {
        true
    }
}

impl Observer for BusyClients {
    fn observe(&self, event: &Event<'_>, _: &Rules) {
        if let Event::Decided { decided, .. } = event
            && fastrand::u32(..).is_multiple_of(SAMPLE)
        {
            let now = now();
            for (limit, key) in decided.keys() {
                self.0.count(limit, key, u64::from(SAMPLE), now, now, None);
            }
        }
    }

    fn sees_admissions(&self) -> bool {
        true
    }

    fn reads_keys(&self) -> bool {
        true
    }
}
