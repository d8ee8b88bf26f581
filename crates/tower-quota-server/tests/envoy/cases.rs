//! Cases in files, which say what a configuration finds, refuses and answers.

use std::time::Duration;

use serde_json::Value;
use tower_quota_core::{RefusalCache, Timestamp};
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::messages::ratelimit::RateLimitRequest;
use tower_quota_server::messages::ratelimit::rate_limit_response::rate_limit::Unit;
use tower_quota_testkit::ManualClock;

use crate::support::{World, limits, request, shown, text};

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
        options.is_shadow = case["shadow"].as_bool().unwrap_or(false);
        // A machine under load may be slow.
        options.deadline = Duration::from_secs(10);
        let steps = case["steps"].as_array().unwrap().iter().map(|step| {
            let at = Timestamp::EPOCH + Duration::from_secs(step["at"].as_u64().unwrap());
            let request = request(domain, &texts(&step["ask"]));
            (at, request, step["answer"].clone())
        });
        Calls {
            name: case["name"].to_string(),
            domain: domain.to_owned(),
            config: limits(file),
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
        let door = EnvoyDoor::new(calls.config, store, calls.options);
        for (at, request, answer) in calls.steps {
            clock.set(at);
            let shown = shown(&door.decide(&request).await.unwrap());
            assert_eq!(shown, texts(&answer), "{}: {at}", calls.name);
        }
    }
}
