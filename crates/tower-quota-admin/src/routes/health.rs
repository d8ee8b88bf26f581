use std::time::Instant;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tower_quota::RecentOutage;
use tower_quota_live::{LiveState, Time};

use crate::api::Api;
use crate::extract::Json;
use crate::hide::{ReadsKeys, hide_error};
use crate::recent::now;

#[derive(Serialize)]
pub(crate) struct Health {
    healthy: bool,
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    instance: String,
    shows_keys: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<LiveState>,
    stores: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shedding: Vec<Value>,
    waiting: u64,
    refusal_cache: Value,
    mistakes: Vec<Value>,
}

impl Health {
    pub(crate) fn of(api: &Api, ReadsKeys(reads_keys): ReadsKeys) -> Self {
        let handle = api.live.handle();
        let mut rules = api.live.follows_store().then(|| api.live.state());
        if !reads_keys {
            rules.iter_mut().for_each(hide_error);
        }
        let outage = handle.recent_outage();
        let mut problems = Vec::new();
        problems.extend(outage.iter().flat_map(of_outage));
        let mut stores = Vec::new();
        for (name, read) in &api.figures {
            let read = read();
            let fails = outage.is_some() && read.fails_with_layer;
            let available = !read.unavailable && !fails;
            // The problems of an outage say already that a store fails.
            if !available && outage.is_none() {
                problems.push(format!("Store {name} has not answered its last call."));
            }
            stores.push(json!({ "name": name, "available": available, "figures": read.figures }));
        }
        let cache = handle.refusal_stats();
        let mistakes = handle.mistakes();
        let mistakes = mistakes.current();
        if let Some(rules) = &rules {
            problems.extend(of_rules(rules, !handle.limits().is_empty()));
        }
        Self {
            title: api.title.clone(),
            instance: api.instance.clone(),
            shows_keys: api.show_keys,
            healthy: problems.is_empty(),
            problems,
            outage: outage.map(|outage| {
                json!({
                    "uncounted": outage.uncounted,
                    "refused": outage.refused,
                    "local": outage.local,
                    "seconds": outage.period.as_secs(),
                    "cause": outage.cause,
                })
            }),
            rules,
            stores,
            shedding: api.shedding.iter().map(|layer| layer.report()).collect(),
            waiting: handle.waiting() as u64,
            refusal_cache: json!({
                "answered": cache.answered,
                "remembered": cache.remembered,
                "evicted": cache.evicted,
            }),
            mistakes: mistakes
                .map(|(_, text, last)| json!({ "message": text, "last_seen": time_of(last) }))
                .collect(),
        }
    }
}

/// Says how many requests the store did not count in the last ten seconds.
fn of_outage(outage: &RecentOutage) -> Vec<String> {
    let seconds = outage.period.as_secs().max(1);
    let effects = [
        (outage.uncounted, "pass uncounted"),
        (outage.refused, "are refused, because the store fails"),
        (outage.local, "are counted by this instance alone"),
    ];
    let mut problems = Vec::new();
    for (requests, effect) in effects {
        let cause = &outage.cause;
        match (requests, requests.div_ceil(seconds)) {
            (0, _) => {}
            (1, _) => problems.push(format!("1 request/s {effect}: {cause}")),
            (_, rate) => problems.push(format!("{rate} requests/s {effect}: {cause}")),
        }
    }
    problems
}

fn of_rules(rules: &LiveState, has_limits: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(error) = &rules.last_error {
        let what = match rules.is_reachable {
            true => "The newest rules cannot be used",
            false => "The source of the rules fails",
        };
        let since = rules.failing_since.unwrap_or_else(Time::now);
        let stays = rules.in_force.as_ref().map_or_else(String::new, |known| {
            format!(". Version {} stays in force", known.version.number)
        });
        problems.push(format!("{what} since {since}: {error}{stays}."));
    }
    if rules.in_force.is_none() {
        let holds = match has_limits {
            true => "the limits of the program hold",
            false => "every request gets status 503",
        };
        problems.push(format!(
            "No rules are in force yet: {holds} until you put rules."
        ));
    } else if problems.is_empty() && !rules.is_healthy() {
        problems.push("The source of the rules does not answer.".to_owned());
    }
    problems
}

fn time_of(instant: Instant) -> Time {
    Time::now().before(now().saturating_duration_since(instant))
}

/// Returns the health of this instance, its rules, stores, breakers, queues and layers that
/// shed load. The status is always 200.
pub(crate) async fn health(State(api): State<Api>, reads_keys: ReadsKeys) -> Json<Health> {
    Json(Health::of(&api, reads_keys))
}

/// Returns 200 if rules are in force on this instance, even from the local copy, otherwise 503.
/// Needs no token.
pub(crate) async fn ready(State(api): State<Api>) -> StatusCode {
    if api.live.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
