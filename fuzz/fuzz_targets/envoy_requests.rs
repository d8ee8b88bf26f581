//! Requests of Envoy: a status for each descriptor, or an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tower_quota_core::MemoryStore;
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::messages::ratelimit::RateLimitRequest;

const LIMITS: &str = "
domain: d
descriptors:
  - key: a
    rate_limit: { unit: second, requests_per_unit: 5 }
  - key: a
    value: x*
    share_threshold: true
    rate_limit: { unit: day, requests_per_unit: 5, algorithm: token_bucket, post_charge: true }
    descriptors:
      - key: b
        quota_mode: true
        rate_limit: { every: 90s, requests_per_unit: 5 }
";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

static DOOR: LazyLock<EnvoyDoor<MemoryStore>> = LazyLock::new(|| {
    let config = EnvoyConfig::parse([("limits.yaml", LIMITS)], false).unwrap();
    let mut options = EnvoyOptions::default();
    options.dynamic_metadata = true;
    EnvoyDoor::new(config, MemoryStore::with_capacity(1_000), options)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut request) = RateLimitRequest::decode(bytes) else {
        return;
    };
    if bytes.len() % 2 == 0 {
        request.domain = "d".into();
    }
    if let Ok(response) = RUNTIME.block_on(DOOR.decide(&request)) {
        assert_eq!(response.statuses.len(), request.descriptors.len());
    }
});
