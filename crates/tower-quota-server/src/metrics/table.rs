//! The names of the metrics. For a new metric, add a row here and in `docs/reference/server.md`.

use ::metrics::{describe_counter, describe_gauge, describe_histogram};

pub(super) const CONNECTIONS: &str = "tower_quota_server_connections";
pub(super) const CLOSED: &str = "tower_quota_server_closed_connections_total";
pub(super) const CERTIFICATES: &str = "tower_quota_server_certificate_reloads_total";
pub(super) const CONFIG_LOADS: &str = "ratelimit_service_config_load_success";
pub(super) const CONFIG_ERRORS: &str = "ratelimit_service_config_load_error";

pub(super) const CALLS: &str = "ratelimit_service_total_requests";
pub(super) const CALL_TIME: &str = "ratelimit_service_response_time_seconds";
pub(super) const CALL_ERRORS: &str = "ratelimit_service_should_rate_limit_error";

/// The upper bounds of the times of calls, in seconds.
pub(super) const TIMES: &[f64] = &[
    2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 1.5e-2, 2.5e-2, 0.1,
];

/// Describes the metrics to the recorder.
pub(super) fn describe() {
    describe_gauge!(CONNECTIONS, "Connections of a port.");
    describe_counter!(
        CLOSED,
        "Connections that the server ended or refused, by port and reason."
    );
    describe_counter!(
        CERTIFICATES,
        "Changed certificates by port and result. Rejected certificates leave the earlier ones in use."
    );
    describe_counter!(CONFIG_LOADS, "Limits that came into force.");
    describe_counter!(CONFIG_ERRORS, "Limits that could not be used.");
    describe_counter!(CALLS, "Calls of Envoy.");
    describe_histogram!(CALL_TIME, "Time of a call of Envoy.");
    describe_counter!(
        CALL_ERRORS,
        "Calls of Envoy that got an error, by its kind. A failed store is a redis_error, in memory too."
    );
}
