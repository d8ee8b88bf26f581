//! Health of the server: whether to send requests to it, and why not.
//!
//! | path | fails |
//! |---|---|
//! | `/healthz` | never, so that an outage of Redis restarts no server |
//! | `/readyz` | after SIGTERM, without limits, and without Redis if `--ready-with-redis` is set |
//! | `/healthcheck` | after SIGTERM, and without limits if `--healthy-with-limits` is set |

use core::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tokio::sync::Notify;
use tower_quota_live::LiveRules;

use crate::metrics;

/// The health of a server. Clones share it.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    needs_store: bool,
    needs_limits: bool,
    is_ending: AtomicBool,
    sources: Mutex<Vec<SourceState>>,
    documents: Option<LiveRules>,
    store: Mutex<StoreState>,
    changed: Notify,
}

/// A source of limits, which reports each configuration that arrives.
#[derive(Clone, Debug)]
pub struct Source {
    health: Health,
    position: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
struct SourceState {
    name: String,
    /// The limits that are in force.
    limits: Option<usize>,
    /// The problem of the newest configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct StoreState {
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The health as JSON.
#[derive(Serialize)]
struct Report {
    ready: bool,
    /// Why the server is not ready.
    reasons: Vec<String>,
    sources: Vec<SourceState>,
    store: StoreState,
}

impl Health {
    /// Creates the health of a server that counts in this place.
    pub(super) fn new(
        place: &'static str,
        documents: Option<LiveRules>,
        needs_store: bool,
        needs_limits: bool,
    ) -> Self {
        Self(Arc::new(Inner {
            needs_store,
            needs_limits,
            is_ending: AtomicBool::new(false),
            sources: Mutex::default(),
            documents,
            store: Mutex::new(StoreState {
                place,
                problem: None,
            }),
            changed: Notify::new(),
        }))
    }

    /// Adds a source of limits. The server is not ready before the source has loaded limits.
    pub fn source(&self, name: impl Into<String>) -> Source {
        let mut sources = lock(&self.0.sources);
        sources.push(SourceState {
            name: name.into(),
            ..SourceState::default()
        });
        Source {
            health: self.clone(),
            position: sources.len() - 1,
        }
    }

    /// Makes the server unready for good.
    pub(super) fn end(&self) {
        self.0.is_ending.store(true, Ordering::Relaxed);
    }

    /// Sets whether the store answers.
    pub(super) fn set_store(&self, problem: Option<String>) {
        let mut store = lock(&self.0.store);
        match (&store.problem, &problem) {
            (None, Some(problem)) => tracing::warn!(
                "{} does not answer, so each limit chooses what to answer: {problem}",
                store.place
            ),
            (Some(_), None) => tracing::info!("{} answers again", store.place),
            _ => {}
        }
        store.problem = problem;
        self.0.changed.notify_one();
    }

    /// Waits until the store or a source has reported something.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns whether the server wants requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.report().ready
    }

    fn report(&self) -> Report {
        let mut sources = lock(&self.0.sources).clone();
        sources.extend(self.0.documents.as_ref().map(of_documents));
        let store = lock(&self.0.store).clone();
        let mut reasons = Vec::new();
        if self.0.is_ending.load(Ordering::Relaxed) {
            reasons.push("the server is ending".to_owned());
        }
        for source in &sources {
            if source.limits.is_none() {
                let problem = source
                    .problem
                    .as_deref()
                    .unwrap_or("the xDS server has sent none");
                reasons.push(format!("{} has no limits yet: {problem}", source.name));
            }
        }
        if let (true, Some(problem)) = (self.0.needs_store, &store.problem) {
            reasons.push(format!("{} does not answer: {problem}", store.place));
        }
        Report {
            ready: reasons.is_empty(),
            reasons,
            sources,
            store,
        }
    }

    /// Answers `/healthcheck` as envoyproxy/ratelimit does.
    fn healthcheck(&self) -> bool {
        let sources = lock(&self.0.sources);
        let has_limits = sources.iter().any(|source| source.limits.is_some());
        let is_ending = self.0.is_ending.load(Ordering::Relaxed);
        let lacks_limits = self.0.needs_limits && !sources.is_empty() && !has_limits;
        !is_ending && !lacks_limits
    }

    /// Returns the routes of the health checks.
    pub(super) fn routes(&self) -> Router {
        let (ready, check) = (self.clone(), self.clone());
        Router::new()
            .route("/healthz", get(async || "OK"))
            .route("/readyz", get(async move || ready.report()))
            .route(
                "/healthcheck",
                get(async move || match check.healthcheck() {
                    true => (StatusCode::OK, "OK"),
                    false => (
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "the server is ending, or has no limits yet",
                    ),
                }),
            )
    }
}

impl IntoResponse for Report {
    fn into_response(self) -> Response {
        let status = match self.ready {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let body = serde_json::to_string_pretty(&self).unwrap_or_default();
        (
            status,
            [(header::CONTENT_TYPE, "application/json")],
            body + "\n",
        )
            .into_response()
    }
}

impl Source {
    /// Reports limits that are in force now.
    pub fn loaded(&self, limits: usize) {
        metrics::config_loaded();
        self.set(|state| {
            tracing::info!("new limits of {}: {limits}", state.name);
            state.limits = Some(limits);
            state.problem = None;
        });
    }

    /// Reports a configuration that cannot be used. The earlier limits stay.
    pub fn rejected(&self, problem: &dyn Display) {
        metrics::config_rejected();
        self.set(|state| {
            let stays = match state.limits {
                Some(_) => "the earlier limits stay",
                None => "there are no limits yet",
            };
            tracing::error!(
                "the limits of {} cannot be used, {stays}: {problem}",
                state.name
            );
            state.problem = Some(problem.to_string());
        });
    }

    fn set(&self, change: impl FnOnce(&mut SourceState)) {
        if let Some(state) = lock(&self.health.0.sources).get_mut(self.position) {
            change(state);
        }
        self.health.0.changed.notify_one();
    }
}

fn of_documents(live: &LiveRules) -> SourceState {
    let state = live.state();
    let limits = state.in_force.map(|_| live.handle().limits().len());
    let is_empty = limits.is_none() && state.last_error.is_none();
    let first = is_empty.then(|| "put the first document by the admin API".to_owned());
    SourceState {
        name: state.store,
        limits,
        problem: state.last_error.or(first),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
