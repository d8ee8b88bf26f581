//! Requests in a short notation, over a store with a clock that tests move.
//!
//! A descriptor is entries and options, such as `user=ann plan=gold hits:3`. `back:2` gives hits back, and `limit:10/DAY` is
//! a limit of the descriptor itself. A status is shown as `OK 9 26s`, with the remaining requests and the reset.

use std::fs;
use std::path::PathBuf;

use tower_quota_core::{MemoryStore, Timestamp};
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::messages::RateLimitUnit;
use tower_quota_server::messages::descriptors::RateLimitDescriptor;
use tower_quota_server::messages::descriptors::rate_limit_descriptor::{Entry, RateLimitOverride};
use tower_quota_server::messages::ratelimit::rate_limit_response::{Code, DescriptorStatus};
use tower_quota_server::messages::ratelimit::{RateLimitRequest, RateLimitResponse};
use tower_quota_testkit::ManualClock;

/// Returns the path of a file of these tests.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/envoy")
        .join(name)
}

/// Returns the text of a file of these tests.
pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// Returns the limits of a file of these tests.
pub(crate) fn limits(name: &str) -> EnvoyConfig {
    let text = text(&format!("limits/{name}.yaml"));
    match EnvoyConfig::parse([(name, text.as_str())], false) {
        Ok(config) => config,
        Err(problems) => panic!("{problems}"),
    }
}

/// Returns the limits of a text.
pub(crate) fn parsed(text: &str) -> EnvoyConfig {
    EnvoyConfig::parse([("limits.yaml", text)], false)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// A service in memory with a clock of its own.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) door: EnvoyDoor<MemoryStore>,
    domain: String,
}

impl World {
    pub(crate) fn new(domain: &str, config: EnvoyConfig) -> Self {
        Self::with_options(domain, config, EnvoyOptions::default())
    }

    pub(crate) fn with_options(domain: &str, config: EnvoyConfig, options: EnvoyOptions) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_200_000_000));
        let store = MemoryStore::with_clock(10_000, clock.clone());
        Self {
            clock,
            door: EnvoyDoor::new(config, store, options),
            domain: domain.to_owned(),
        }
    }

    pub(crate) fn ask(&self, descriptors: &[&str]) -> RateLimitResponse {
        self.send(&request(&self.domain, descriptors)).unwrap()
    }

    pub(crate) fn send(
        &self,
        request: &RateLimitRequest,
    ) -> Result<RateLimitResponse, tonic::Status> {
        run(self.door.decide(request))
    }

    /// Returns the overall code and all statuses as text.
    pub(crate) fn shown(&self, descriptors: &[&str]) -> Vec<String> {
        shown(&self.ask(descriptors))
    }
}

/// Runs a future in virtual time.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

/// Makes a request from descriptors in the short notation.
pub(crate) fn request(domain: &str, descriptors: &[&str]) -> RateLimitRequest {
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: descriptors.iter().map(|text| descriptor(text)).collect(),
        hits_addend: 0,
    }
}

fn descriptor(text: &str) -> RateLimitDescriptor {
    let mut descriptor = RateLimitDescriptor::default();
    for part in text.split_whitespace() {
        if let Some((key, value)) = part.split_once('=') {
            descriptor.entries.push(Entry {
                key: key.to_owned(),
                value: value.to_owned(),
            });
            continue;
        }
        let (option, value) = part.split_once(':').unwrap();
        match option {
            "limit" => {
                let (requests, unit) = value.split_once('/').unwrap();
                descriptor.limit = Some(RateLimitOverride {
                    requests_per_unit: requests.parse().unwrap(),
                    unit: RateLimitUnit::from_str_name(unit).unwrap().into(),
                });
            }
            "hits" | "back" => {
                descriptor.hits_addend = Some(value.parse().unwrap());
                descriptor.is_negative_hits = option == "back";
            }
            _ => panic!("{part}"),
        }
    }
    descriptor
}

/// Shows a response, with the overall code first.
pub(crate) fn shown(response: &RateLimitResponse) -> Vec<String> {
    let mut shown = vec![code(response.overall_code())];
    shown.extend(response.statuses.iter().map(status));
    shown
}

fn status(status: &DescriptorStatus) -> String {
    let code = code(status.code());
    if status.current_limit.is_none() {
        return match status.limit_remaining {
            0 => code,
            remaining => format!("{code} {remaining}"),
        };
    }
    let remaining = status.limit_remaining;
    match status.duration_until_reset {
        Some(reset) => format!("{code} {remaining} {}s", reset.seconds),
        None => format!("{code} {remaining}"),
    }
}

fn code(code: Code) -> String {
    match code {
        Code::Ok => "OK".into(),
        Code::OverLimit => "OVER".into(),
        Code::Unknown => "UNKNOWN".into(),
    }
}
