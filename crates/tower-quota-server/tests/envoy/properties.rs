//! Random calls never get more than a window has, and damaged input never stops the server.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use prost::Message;
use tower_quota_core::Timestamp;
use tower_quota_server::envoy::EnvoyConfig;
use tower_quota_server::messages::ratelimit::RateLimitRequest;
use tower_quota_server::messages::ratelimit::rate_limit_response::Code;

use crate::cases::resource;
use crate::support::{World, limits, parsed, request, text};

const TEXT: &str = "
domain: d
descriptors:
  - key: five
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: three
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 4 }
";

const LIMITS: [(&str, u64); 3] = [("five", 5), ("three", 3), ("quota", 4)];

/// A pause in seconds, and descriptors as the limit, the value and the hits.
type Step = (u64, Vec<(usize, u8, u64)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let descriptor = (0..LIMITS.len(), 0..2_u8, 0..4_u64);
    let call = prop::collection::vec(descriptor, 1..4);
    prop::collection::vec((0..40_u64, call), 1..40)
}

proptest! {
    #[test]
    fn window_admits_at_most_its_quota(steps in steps()) {
        let world = World::new("d", parsed(TEXT));
        let mut now = 1_200;
        let mut admitted: HashMap<(usize, u8, u64), u64> = HashMap::new();
        for (pause, call) in steps {
            now += pause;
            world.clock.set(Timestamp::EPOCH + Duration::from_secs(now));
            let texts: Vec<String> = call
                .iter()
                .map(|(limit, value, hits)| format!("{}={value} hits:{hits}", LIMITS[*limit].0))
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let response = world.ask(&texts);
            if response.overall_code() != Code::Ok {
                continue;
            }
            // A quota that is exceeded takes nothing, although the call passes.
            for ((limit, value, hits), status) in call.into_iter().zip(&response.statuses) {
                if status.code() == Code::Ok {
                    *admitted.entry((limit, value, now / 60)).or_default() += hits;
                }
            }
        }
        for ((limit, ..), hits) in admitted {
            prop_assert!(hits <= LIMITS[limit].1, "{} {hits}", LIMITS[limit].0);
        }
    }

    #[test]
    fn refused_call_changes_nothing(steps in steps()) {
        let (world, calm) = (World::new("d", parsed(TEXT)), World::new("d", parsed(TEXT)));
        let mut now = 1_200;
        for (pause, call) in steps {
            now += pause;
            let at = Timestamp::EPOCH + Duration::from_secs(now);
            world.clock.set(at);
            calm.clock.set(at);
            let texts: Vec<String> = call
                .iter()
                .map(|(limit, value, hits)| format!("{}={value} hits:{hits}", LIMITS[*limit].0))
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let response = world.ask(&texts);
            if response.overall_code() == Code::Ok {
                // The other service never sees refused calls.
                prop_assert_eq!(response, calm.ask(&texts));
            }
        }
    }
}

/// Replaces bytes at positions, which count from the start again after the end.
fn damaged(mut bytes: Vec<u8>, damage: &[(usize, u8)]) -> Vec<u8> {
    for (position, byte) in damage {
        let position = position % bytes.len();
        bytes[position] = *byte;
    }
    bytes
}

fn damage(bytes: &'static str) -> impl Strategy<Value = Vec<(usize, u8)>> {
    let byte = prop::sample::select(bytes.as_bytes());
    prop::collection::vec((any::<usize>(), byte), 1..6)
}

proptest! {
    #[test]
    fn damaged_limits_are_read_or_refused(damage in damage("\n -:*&{}[]\"'#x09!|>%@\t"), file in 0..4_usize) {
        let name = ["tree", "wildcards", "gateway", "service"][file];
        let bytes = damaged(text(&format!("limits/{name}.yaml")).into_bytes(), &damage);
        let text = String::from_utf8(bytes).unwrap();
        if let Err(problems) = EnvoyConfig::parse([("damaged", text.as_str())], false) {
            for problem in problems.iter() {
                prop_assert!(problem.to_string().starts_with("damaged:"), "{}", problem);
            }
        }
    }

    #[test]
    fn damaged_resources_are_read_or_refused(damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6)) {
        let text = text("cases/gateway.jsonl");
        for case in text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
            let mut resource = resource(&case["limits"]);
            resource.value = damaged(resource.value, &damage);
            if let Err(problems) = EnvoyConfig::decode(&[resource], false) {
                prop_assert!(problems.iter().all(|problem| problem.line == 0));
            }
        }
    }

    #[test]
    fn damaged_requests_get_statuses_or_an_error(damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6)) {
        let asked = ["ten=x hits:3", "quota=x", "spare=x back:2", "nope=x limit:9/DAY", "tokens=x hits:0"];
        let bytes = damaged(request("service", &asked).encode_to_vec(), &damage);
        let Ok(mut request) = RateLimitRequest::decode(bytes.as_slice()) else {
            return Ok(());
        };
        request.domain = "service".into();
        if let Ok(response) = World::new("service", limits("service")).send(&request) {
            prop_assert_eq!(response.statuses.len(), request.descriptors.len());
        }
    }
}
