use core::time::Duration;
use std::sync::Arc;

use http::Response;
use tower_quota::key::KeyExtractor;
use tower_quota::response::RefusalBody;
use tower_quota::{Protocol, Refused, RequestHead};

use crate::layer::problem_details;
use crate::limit::LimitSettings;
use crate::priority::Priority;

pub(crate) type Rule<T> = dyn Fn(&RequestHead<'_>) -> Option<T> + Send + Sync;

type Respond = dyn Fn(&Refused<'_>) -> Response<RefusalBody> + Send + Sync;

/// The options of a layer.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limit: LimitSettings,
    pub(crate) priorities: Vec<Arc<Rule<Priority>>>,
    pub(crate) key: Option<Arc<dyn KeyExtractor>>,
    pub(crate) holds: Vec<Arc<Rule<Hold>>>,
    /// The requests that may wait, and the longest wait.
    pub(crate) queue: (usize, Duration),
    /// The shortest and the longest retry time.
    pub(crate) retry: (Duration, Duration),
    pub(crate) protocol: Protocol,
    pub(crate) respond: Arc<Respond>,
}

/// How long a request holds its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The request takes no place.
    Nothing,
    /// A long body leaves the limit.
    WhileShort,
    UntilEnd,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limit: LimitSettings::default(),
            priorities: Vec::new(),
            key: None,
            holds: vec![Arc::new(hold_of_health_check)],
            queue: (0, Duration::ZERO),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            protocol: Protocol::default(),
            respond: Arc::new(problem_details),
        }
    }
}

impl Settings {
    /// Returns whether the lock has to order requests.
    pub(crate) fn needs_order(&self) -> bool {
        !self.priorities.is_empty() || self.key.is_some() || self.queue.0 > 0
    }

    pub(crate) fn priority_of(&self, head: &RequestHead<'_>) -> Priority {
        first(&self.priorities, head).unwrap_or_default()
    }

    pub(crate) fn hold_of(&self, head: &RequestHead<'_>) -> Hold {
        first(&self.holds, head).unwrap_or(Hold::WhileShort)
    }

    /// Returns a random retry time for this number of requests for each hundred answers.
    ///
    /// A service that gets ten requests for each answer needs ten times as long for all of them, and the wait spreads
    /// the retries over this time.
    pub(crate) fn retry_after(&self, demand: u64) -> Duration {
        let (least, most) = self.retry;
        let demand = u32::try_from(demand).unwrap_or(u32::MAX);
        let shortest = (least.saturating_mul(demand) / 100)
            .min(most / 2)
            .max(least);
        let spread = shortest.saturating_mul(fastrand::u32(..=1_000)) / 1_000;
        (shortest + spread).min(most)
    }
}

/// Leaves out health checks by the names of gRPC and Kubernetes.
fn hold_of_health_check(head: &RequestHead<'_>) -> Option<Hold> {
    let is_health_check = head.path_matches(|path| {
        matches!(path, "/healthz" | "/livez" | "/readyz")
            || path.starts_with("/grpc.health.v1.Health/")
    });
    is_health_check.then_some(Hold::Nothing)
}

fn first<T>(rules: &[Arc<Rule<T>>], head: &RequestHead<'_>) -> Option<T> {
    rules.iter().find_map(|rule| rule(head))
}
