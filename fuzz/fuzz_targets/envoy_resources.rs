//! Resources of an xDS server: read, or refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost_types::Any;
use tower_quota_server::envoy::EnvoyConfig;

const TYPE: &str = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.first().map_or(0, |byte| usize::from(*byte)).min(bytes.len());
    let (first, second) = bytes.split_at(split);
    let resources = [first, second].map(|value| Any {
        type_url: TYPE.to_owned(),
        value: value.to_vec(),
    });
    if let Err(problems) = EnvoyConfig::decode(&resources, bytes.len() % 2 == 0) {
        assert!(problems.iter().next().is_some(), "a refusal has a reason");
        for problem in problems.iter() {
            assert!(problem.message.len() <= 4_000);
        }
    }
});
