//! Responses of an xDS server: read, or refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use tower_quota_server::envoy::EnvoyConfig;
use tower_quota_server::messages::discovery::DiscoveryResponse;

const TYPE: &str = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut response) = DiscoveryResponse::decode(bytes) else {
        return;
    };
    for resource in &mut response.resources {
        resource.type_url = TYPE.to_owned();
    }
    if let Err(problems) = EnvoyConfig::decode(&response.resources, bytes.len() % 2 == 0) {
        assert!(problems.iter().next().is_some(), "a refusal has a reason");
        for problem in problems.iter() {
            assert!(problem.message.len() <= 4_000);
        }
    }
});
