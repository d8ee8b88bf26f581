//! Cases in files, which say what a configuration finds, refuses and answers.

use std::time::Duration;

use prost::Message;
use prost_types::Any;
use serde_json::Value;
use tower_quota_core::{RefusalCache, Timestamp};
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::messages::config::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};
use tower_quota_server::messages::ratelimit::RateLimitRequest;
use tower_quota_server::messages::ratelimit::rate_limit_response::rate_limit::Unit;
use tower_quota_testkit::ManualClock;

use crate::support::{World, limits, parsed, request, shown, text};

fn lines(name: &str) -> Vec<Value> {
    let text = text(name);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn descriptors_find_their_limits() {
    for case in lines("cases/look_ups.jsonl") {
        let (file, ask) = (
            case["file"].as_str().unwrap(),
            case["ask"].as_str().unwrap(),
        );
        let domain = match file {
            "tree" => "shop",
            "wildcards" => "files",
            _ => "first-listener",
        };
        let response = World::new(domain, limits(file)).ask(&[ask]);
        let status = &response.statuses[0];
        let found = match &status.current_limit {
            None if status.limit_remaining == u32::MAX => Value::from("unlimited"),
            None => Value::Null,
            Some(limit) => {
                let unit = Unit::try_from(limit.unit).unwrap().as_str_name();
                let shown = format!("{}/{unit} {}", limit.requests_per_unit, limit.name);
                Value::from(shown.trim_end())
            }
        };
        assert_eq!(found, case["limit"], "{case}");
    }
}

#[test]
fn problems_name_place_and_fix() {
    for case in lines("cases/problems.jsonl") {
        let files = texts(&case["files"]);
        let names: Vec<String> = (1..=files.len())
            .map(|number| format!("{number}.yaml"))
            .collect();
        let named = names.iter().map(String::as_str).zip(files);
        let merge = case["merge"].as_bool().unwrap_or(false);
        let problems = EnvoyConfig::parse(named, merge).expect_err(case["name"].as_str().unwrap());
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = texts(&case["problems"]);
        assert_eq!(shown.len(), expected.len(), "{case}\n{problems}");
        for (shown, expected) in shown.iter().zip(expected) {
            assert!(shown.contains(expected), "{case}\n{shown}");
        }
    }
}

/// Calls of a domain at given times, with their answers.
struct Calls {
    name: String,
    domain: String,
    config: EnvoyConfig,
    options: EnvoyOptions,
    steps: Vec<(Timestamp, RateLimitRequest, Value)>,
}

fn all_calls() -> Vec<Calls> {
    let cases: Vec<Value> = serde_json::from_str(&text("cases/calls.json")).unwrap();
    let calls = cases.iter().map(|case| {
        let file = case["limits"].as_str().unwrap();
        let domain = if file == "wildcards" { "files" } else { file };
        let mut options = EnvoyOptions::default();
        options.is_shadow = case["shadow"] == true;
        options.is_quota = case["quota"] == true;
        // A machine under load may be slow.
        options.deadline = Duration::from_secs(60);
        let steps = case["steps"].as_array().unwrap().iter().map(|step| {
            let at = Timestamp::EPOCH + Duration::from_secs(step["at"].as_u64().unwrap());
            let request = request(domain, &texts(&step["ask"]));
            (at, request, step["answer"].clone())
        });
        let mut limits = text(&format!("limits/{file}.yaml"));
        if case["compatible"] == true {
            limits += "compatible: true\n";
        }
        Calls {
            name: case["name"].to_string(),
            domain: domain.to_owned(),
            config: parsed(&limits),
            options,
            steps: steps.collect(),
        }
    });
    calls.collect()
}

#[test]
fn calls_get_their_answers() {
    for calls in all_calls() {
        let world = World::with_options(&calls.domain, calls.config, calls.options);
        for (at, request, answer) in calls.steps {
            world.clock.set(at);
            let shown = shown(&world.send(&request).unwrap());
            assert_eq!(shown, texts(&answer), "{}: {at}", calls.name);
        }
    }
}

#[tokio::test]
async fn calls_over_redis_get_the_same_answers() {
    let server = RedisServer::start();
    for (number, calls) in all_calls().into_iter().enumerate() {
        let clock = ManualClock::default();
        let store = RedisStore::options()
            .prefix(format!("case{number}"))
            .clock(clock.clone())
            .deadline(calls.options.deadline);
        let store =
            RefusalCache::with_clock(store.connect(&server.url()).await.unwrap(), clock.clone());
        let door = EnvoyDoor::with_cache(calls.config, store, calls.options);
        for (at, request, answer) in calls.steps {
            clock.set(at);
            let shown = shown(&door.decide(&request).await.unwrap());
            assert_eq!(shown, texts(&answer), "{}: {at}", calls.name);
        }
    }
}

/// Makes the resource that an xDS server sends in place of a file.
pub(crate) fn resource(file: &Value) -> Any {
    let config = RateLimitConfig {
        name: "pairs".to_owned(),
        domain: file["domain"].as_str().unwrap().to_owned(),
        descriptors: descriptors(&file["descriptors"]),
    };
    Any {
        type_url: "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig".to_owned(),
        value: config.encode_to_vec(),
    }
}

fn descriptors(list: &Value) -> Vec<RateLimitDescriptor> {
    let owned = |text: &Value| text.as_str().unwrap_or_default().to_owned();
    let list = list.as_array().into_iter().flatten();
    let descriptors = list.map(|descriptor| {
        let limit = &descriptor["rate_limit"];
        let policy = || RateLimitPolicy {
            unit: RateLimitUnit::from_str_name(limit["unit"].as_str().unwrap())
                .unwrap()
                .into(),
            requests_per_unit: limit["requests_per_unit"]
                .as_u64()
                .unwrap()
                .try_into()
                .unwrap(),
            unlimited: limit["unlimited"] == true,
            name: owned(&limit["name"]),
            replaces: Vec::new(),
        };
        RateLimitDescriptor {
            key: owned(&descriptor["key"]),
            value: owned(&descriptor["value"]),
            rate_limit: limit.is_object().then(policy),
            descriptors: self::descriptors(&descriptor["descriptors"]),
            shadow_mode: descriptor["shadow_mode"] == true,
            quota_mode: descriptor["quota_mode"] == true,
            detailed_metric: descriptor["detailed_metric"] == true,
            metadata: None,
        }
    });
    descriptors.collect()
}

#[test]
fn gateways_get_the_same_from_files_and_xds() {
    for case in lines("cases/gateway.jsonl") {
        let file = &case["limits"];
        let domain = file["domain"].as_str().unwrap();
        // JSON is YAML.
        let from_file = parsed(&file.to_string());
        let from_xds = EnvoyConfig::decode(&[resource(file)], false).unwrap();
        for config in [from_file, from_xds] {
            let world = World::new(domain, config);
            for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
                let shown = world.shown(&texts(&step["ask"]));
                assert_eq!(shown, texts(&step["answer"]), "{}: {number}", case["name"]);
            }
        }
    }
}
