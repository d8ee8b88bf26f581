use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tower_quota_shed::{Cause, Priority, ShedHandle, ShedStats};

use crate::shedding::Shedding;

const SECONDS: usize = 10;

/// A [`ShedLayer`](tower_quota_shed::ShedLayer) with its name.
pub(crate) struct NamedShedLayer {
    name: String,
    handle: ShedHandle,
    /// The figures of the last seconds, the oldest first.
    recent: Mutex<VecDeque<ShedStats>>,
}

impl NamedShedLayer {
    pub(crate) fn new(name: String, handle: ShedHandle) -> Self {
        let recent = Mutex::new(VecDeque::from([handle.stats()]));
        Self {
            name,
            handle,
            recent,
        }
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<ShedStats>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shedding for NamedShedLayer {
    fn observe(&self) {
        let mut recent = self.recent();
        recent.push_back(self.handle.stats());
        if recent.len() > SECONDS {
            recent.pop_front();
        }
    }

    fn report(&self) -> Value {
        let recent = self.recent();
        // Read under the lock, so that the present figures are the newest.
        let stats = self.handle.stats();
        let mut refused = Vec::new();
        for priority in Priority::ALL {
            for cause in Cause::ALL {
                let before = recent.front().map_or(0, |it| it.refused(priority, cause));
                let requests = stats.refused(priority, cause) - before;
                if requests > 0 {
                    let (priority, cause) = (priority.name(), cause.name());
                    refused.push(
                        json!({ "priority": priority, "cause": cause, "requests": requests }),
                    );
                }
            }
        }
        json!({
            "layer": self.name,
            "limit": stats.limit,
            "in_progress": stats.in_progress,
            "long_bodies": stats.long_bodies,
            "waiting": stats.waiting,
            "is_shedding": stats.is_shedding,
            "base_latency_us": stats.base_latency.map(micros),
            "latency_us": stats.latency.map(micros),
            "refused": refused,
        })
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use core::future::pending;

    use axum::body::Body;
    use http::{Request, Response};
    use tower::{Layer, Service, service_fn};
    use tower_quota_shed::{LimitSettings, ShedLayer};

    use super::*;

    fn request() -> Request<Body> {
        Request::new(Body::empty())
    }

    #[tokio::test]
    async fn refusals_count_for_ten_seconds() {
        let layer = ShedLayer::new().limit(LimitSettings::fixed(1)).unwrap();
        let named = NamedShedLayer::new("api".to_owned(), layer.handle());
        let mut busy = layer.layer(service_fn(|_| {
            pending::<Result<Response<Body>, Infallible>>()
        }));
        let _running = busy.call(request());
        let refused = || named.report()["refused"][0]["requests"].as_u64();
        for _ in 0..3 {
            busy.call(request()).await.unwrap();
        }
        assert_eq!(refused(), Some(3));
        // The first nine seconds begin before the refusals.
        for _ in 0..SECONDS - 1 {
            named.observe();
            assert_eq!(refused(), Some(3));
        }
        busy.call(request()).await.unwrap();
        named.observe();
        assert_eq!(refused(), Some(1));
    }
}
