//! The names of the metrics. For a new metric, add a row here and in `docs/reference/server.md`.

use ::metrics::{describe_counter, describe_gauge};

pub(super) const CONNECTIONS: &str = "tower_quota_server_connections";
pub(super) const CLOSED: &str = "tower_quota_server_closed_connections_total";
pub(super) const CERTIFICATES: &str = "tower_quota_server_certificate_reloads_total";
pub(super) const CONFIG_LOADS: &str = "ratelimit_service_config_load_success";
pub(super) const CONFIG_ERRORS: &str = "ratelimit_service_config_load_error";

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
}
