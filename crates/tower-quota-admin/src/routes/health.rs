use std::collections::BTreeMap;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use tower_quota_live::LiveState;
use utoipa::ToSchema;

use crate::api::Api;
use crate::extract::Json;

/// The health of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// True if the newest rules are in force, or code makes them, and all stores answer.
    healthy: bool,
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
    /// Configuration mistakes detected in requests.
    mistakes: Vec<MistakeHealth>,
}

/// A store with its breakers and queues.
#[derive(Debug, Serialize, ToSchema)]
struct StoreHealth {
    name: String,
    available: bool,
    figures: BTreeMap<&'static str, u64>,
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
}

impl Health {
    pub(crate) fn of(api: &Api) -> Self {
        let handle = api.live.handle();
        let rules = api.live.follows_store().then(|| api.live.state());
        let figures = |(name, read): &crate::figures::NamedFigures| {
            let read = read();
            StoreHealth {
                name: name.clone(),
                available: !read.unavailable,
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
            .warnings()
            .map(|(_, text)| MistakeHealth {
                message: text.to_owned(),
            })
            .collect();
        let healthy = rules.as_ref().is_none_or(LiveState::is_healthy)
            && stores.iter().all(|store| store.available);
        Self {
            title: api.title.clone(),
            instance: api.instance.clone(),
            shows_keys: api.show_keys,
            healthy,
            rules,
            stores,
            waiting: handle.waiting() as u64,
            refusal_cache,
            mistakes,
        }
    }
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
