//! Tests of the layer through its public interface, one module per topic.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod axum_apps;
#[cfg(feature = "axum")]
mod axum_extractors;
#[cfg(feature = "axum")]
mod axum_tiers;
mod choose;
mod clones;
mod conditions;
mod costs;
mod cut_streams;
mod decisions_observed;
mod degraded;
mod errors;
mod fixture;
mod flags;
#[cfg(feature = "axum")]
mod guesses;
mod handle;
#[cfg(feature = "axum")]
mod holds;
#[cfg(feature = "redis")]
mod holds_cluster;
#[cfg(all(feature = "axum", feature = "redis"))]
mod holds_redis;
#[cfg(all(feature = "axum", feature = "redis"))]
mod kept_holds;
#[cfg(feature = "lease")]
mod leases;
mod lists;
mod look_ups;
mod missing_keys;
mod nesting;
mod overrides;
mod panics;
mod policies;
mod readiness;
mod refusal_cache;
#[cfg(feature = "axum")]
mod rewritten_paths;
mod run_time;
mod run_time_quotas;
mod settling;
mod settling_abandoned;
mod settling_by_rule;
mod settling_debts;
#[cfg(feature = "tonic")]
mod settling_grpc;
#[cfg(feature = "redis")]
mod settling_redis;
mod settling_sockets;
mod settling_together;
mod shadows;
#[path = "../shared/mod.rs"]
mod shared;
#[cfg(feature = "axum")]
mod slow_readers;
#[cfg(feature = "axum")]
mod soft_limits;
mod store_calls;
mod store_failure;
mod store_timeouts;
#[cfg(feature = "tonic")]
mod tonic_server;
#[cfg(feature = "top")]
mod top;
#[cfg(feature = "redis")]
mod unavailable_redis;
mod waiting;
mod waiting_holds;
mod when_degraded;
