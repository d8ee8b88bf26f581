//! Limits in Envoy's YAML: read, or refused with places.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota_server::envoy::EnvoyConfig;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Err(problems) = EnvoyConfig::parse([("fuzz.yaml", text)], false) {
        assert!(problems.iter().next().is_some(), "a refusal has a reason");
        for problem in problems.iter() {
            assert!(problem.to_string().starts_with("fuzz.yaml:"));
        }
    }
});
