//! The calls of Envoy's service, by the names of envoyproxy/ratelimit.

use metrics::{Counter, Histogram, counter, histogram};
use tonic::{Code, Request, Response, Status};
use tower_quota_core::{Clock, MonotonicClock, Store};

use super::table::{CALL_ERRORS, CALL_TIME, CALLS};
use crate::envoy::EnvoyDoor;
use crate::messages::ratelimit::rate_limit_service_server::RateLimitService;
use crate::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

/// Envoy's service with counts and times of its calls.
pub(crate) struct CountedCalls<S> {
    door: EnvoyDoor<S>,
    clock: MonotonicClock,
    calls: Counter,
    time: Histogram,
    store_errors: Counter,
    other_errors: Counter,
}

impl<S> CountedCalls<S> {
    pub(crate) fn new(door: EnvoyDoor<S>) -> Self {
        let method = [("grpc_method", "ShouldRateLimit")];
        Self {
            door,
            clock: MonotonicClock::new(),
            calls: counter!(CALLS, &method),
            time: histogram!(CALL_TIME, &method),
            store_errors: counter!(CALL_ERRORS, "err_type" => "redis_error"),
            other_errors: counter!(CALL_ERRORS, "err_type" => "service_error"),
        }
    }
}

#[tonic::async_trait]
impl<S: Store> RateLimitService for CountedCalls<S> {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let began = self.clock.now();
        let result = self.door.decide(request.get_ref()).await;
        self.time.record(self.clock.now().since(began));
        self.calls.increment(1);
        match &result {
            Ok(_) => {}
            Err(status) if status.code() == Code::Unavailable => self.store_errors.increment(1),
            Err(_) => self.other_errors.increment(1),
        }
        result.map(Response::new)
    }
}
