use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use tower_quota::RecentOutage;
use tower_quota_live::{LiveState, Time};
use utoipa::ToSchema;

use crate::api::Api;
use crate::extract::Json;
use crate::recent::now;

/// The health of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// True if the newest rules are in force, or code makes them, all stores answer, and the stores
    /// have counted the requests of the last ten seconds.
    healthy: bool,
    /// The reasons why the instance is unhealthy, in words.
    problems: Vec<String>,
    /// The requests of the last ten seconds that the stores did not count, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<OutageHealth>,
    /// The title from the options, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The answering instance.
    instance: String,
    /// True if `show_keys=true` is allowed.
    shows_keys: bool,
    /// The rules in force, their source and errors. Absent if code makes the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<LiveState>,
    /// The reported stores.
    stores: Vec<StoreHealth>,
    /// The number of queued requests.
    waiting: u64,
    refusal_cache: RefusalCacheHealth,
    /// Configuration mistakes that requests showed under the policy in force.
    mistakes: Vec<MistakeHealth>,
}

/// A store with its breakers and queues.
#[derive(Debug, Serialize, ToSchema)]
struct StoreHealth {
    name: String,
    /// False while the store fails, and for ten seconds afterwards.
    available: bool,
    figures: BTreeMap<&'static str, u64>,
}

/// The requests of the last seconds that were decided without the store.
#[derive(Debug, Serialize, ToSchema)]
struct OutageHealth {
    /// Requests that passed uncounted.
    uncounted: u64,
    /// Requests refused because of the failure.
    refused: u64,
    /// Requests counted by this instance alone.
    local: u64,
    /// The time of these requests, at most ten seconds.
    seconds: u64,
    /// A late error of the store.
    cause: String,
}

/// The cache of refusals in front of a shared store.
#[derive(Debug, Serialize, ToSchema)]
struct RefusalCacheHealth {
    /// Requests refused without a call of the store.
    answered: u64,
    /// Remembered refusals.
    remembered: u64,
    /// Evicted refusals.
    evicted: u64,
}

/// A mistake in the configuration.
#[derive(Debug, Serialize, ToSchema)]
struct MistakeHealth {
    /// The mistake and its fix.
    message: String,
    /// When a request last showed the mistake. Most checks examine the first requests of a policy only.
    #[schema(value_type = String, format = DateTime)]
    last_seen: Time,
}

impl Health {
    pub(crate) fn of(api: &Api) -> Self {
        let handle = api.live.handle();
        let rules = api.live.follows_store().then(|| api.live.state());
        let outage = handle.recent_outage();
        let figures = |(name, read): &crate::figures::NamedFigures| {
            let read = read();
            let fails = outage.is_some() && read.fails_with_layer;
            StoreHealth {
                name: name.clone(),
                available: !read.unavailable && !fails,
                figures: read.figures,
            }
        };
        let stores: Vec<_> = api.figures.iter().map(figures).collect();
        let cache = handle.refusal_stats();
        let refusal_cache = RefusalCacheHealth {
            answered: cache.answered,
            remembered: cache.remembered,
            evicted: cache.evicted,
        };
        let mistakes = handle.mistakes();
        let mistakes = mistakes
            .current()
            .map(|(_, text, last)| MistakeHealth {
                message: text.to_owned(),
                last_seen: time_of(last),
            })
            .collect();
        let mut problems = Vec::new();
        problems.extend(outage.iter().flat_map(of_outage));
        // The problems of an outage say already that a store fails.
        let unavailable = stores
            .iter()
            .filter(|store| !store.available && outage.is_none());
        problems.extend(unavailable.map(|store| {
            let name = &store.name;
            format!("Store {name} does not answer: requests get what on_store_failure says.")
        }));
        if let Some(rules) = &rules {
            problems.extend(of_rules(rules, !handle.limits().is_empty()));
        }
        Self {
            title: api.title.clone(),
            instance: api.instance.clone(),
            shows_keys: api.show_keys,
            healthy: problems.is_empty(),
            problems,
            outage: outage.map(OutageHealth::from),
            rules,
            stores,
            waiting: handle.waiting() as u64,
            refusal_cache,
            mistakes,
        }
    }
}

impl From<RecentOutage> for OutageHealth {
    fn from(outage: RecentOutage) -> Self {
        Self {
            uncounted: outage.uncounted,
            refused: outage.refused,
            local: outage.local,
            seconds: outage.period.as_secs(),
            cause: outage.cause,
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
    let age = now().saturating_duration_since(instant).as_millis();
    let age = i64::try_from(age).unwrap_or(i64::MAX);
    Time::from_unix_millis(Time::now().unix_millis().saturating_sub(age))
}

/// Returns the health of this instance, its rules, stores, breakers, queues and leases. The status
/// is always 200.
#[utoipa::path(get, path = "/v1/health", operation_id = "health", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(api): State<Api>) -> Json<Health> {
    Json(Health::of(&api))
}

/// Returns 200 if rules are in force on this instance, even from the local copy, otherwise 503.
/// Needs no token.
#[utoipa::path(
    get,
    path = "/v1/ready",
    operation_id = "ready",
    security(()),
    responses((status = 200, description = "Rules are in force"), (status = 503, description = "No rules are in force yet")),
)]
pub(crate) async fn ready(State(api): State<Api>) -> StatusCode {
    if api.live.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
