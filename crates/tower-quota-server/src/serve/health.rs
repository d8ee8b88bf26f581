//! Health of the server: whether to send requests to it, and why not.
//!
//! | path | fails |
//! |---|---|
//! | `/healthz` | never, so that an outage of Redis restarts no server |
//! | `/readyz` | after SIGTERM, without limits, and without Redis if `--ready-with-redis` is set |
//! | `/healthcheck` | after SIGTERM, and without limits if `--healthy-with-limits` is set |

use core::fmt::Display;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tower_quota_core::Lock;
use tower_quota_live::LiveRules;

use crate::metrics;

/// The health of a server. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Health {
    state: Arc<Lock<State>>,
    documents: Option<LiveRules>,
    needs_store: bool,
    needs_limits: bool,
}

#[derive(Debug)]
struct State {
    is_ending: bool,
    /// The limits of Envoy.
    envoy: Option<Source>,
    store: Store,
}

#[derive(Clone, Debug, Serialize)]
struct Source {
    name: String,
    /// The limits that are in force.
    limits: Option<usize>,
    /// The problem of the newest configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Store {
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The health as JSON.
#[derive(Serialize)]
struct Report {
    ready: bool,
    /// Why the server is not ready, without names of hosts and files.
    reasons: Vec<&'static str>,
    #[serde(flatten)]
    details: Option<Details>,
}

/// The details for administrators.
#[derive(Serialize)]
struct Details {
    sources: Vec<Source>,
    store: Store,
}

impl Health {
    /// Creates the health of a server with these limits of Envoy, which counts in this place.
    pub(super) fn new(
        place: &'static str,
        envoy: Option<String>,
        documents: Option<LiveRules>,
        needs_store: bool,
        needs_limits: bool,
    ) -> Self {
        let envoy = envoy.map(|name| Source {
            name,
            limits: None,
            problem: None,
        });
        let store = Store {
            place,
            problem: None,
        };
        Self {
            state: Arc::new(Lock::new(State {
                is_ending: false,
                envoy,
                store,
            })),
            documents,
            needs_store,
            needs_limits,
        }
    }

    /// Makes the server unready for good.
    pub(super) fn end(&self) {
        self.state.lock().is_ending = true;
    }

    /// Sets whether the store answers.
    pub(super) fn set_store(&self, problem: Option<String>) {
        let store = &mut self.state.lock().store;
        match (&store.problem, &problem) {
            (None, Some(problem)) => tracing::warn!(
                "{} does not answer, so each limit chooses what to answer: {problem}",
                store.place
            ),
            (Some(_), None) => tracing::info!("{} answers again", store.place),
            _ => {}
        }
        store.problem = problem;
    }

    /// Reports limits of Envoy that are in force now, or a configuration that leaves the earlier limits in force.
    pub(super) fn set_limits(&self, loaded: Result<usize, &dyn Display>) {
        let mut state = self.state.lock();
        let Some(source) = &mut state.envoy else {
            return;
        };
        metrics::config(loaded.is_ok());
        match loaded {
            Ok(limits) => {
                tracing::info!("new limits of {}: {limits}", source.name);
                source.limits = Some(limits);
                source.problem = None;
            }
            Err(problem) => {
                let stays = match source.limits {
                    Some(_) => "the earlier limits stay",
                    None => "there are no limits yet",
                };
                let name = &source.name;
                tracing::error!("the limits of {name} cannot be used, {stays}: {problem}");
                source.problem = Some(problem.to_string());
            }
        }
    }

    /// Returns whether the server wants requests.
    pub(super) fn is_ready(&self) -> bool {
        self.report(false).ready
    }

    fn report(&self, has_details: bool) -> Report {
        let documents = self.documents.as_ref().map(of_documents);
        let State {
            is_ending,
            envoy,
            store,
        } = &*self.state.lock();
        let is_empty = |source: &Option<Source>| {
            let limits = source.as_ref().map(|source| source.limits);
            limits == Some(None)
        };
        let is_away = self.needs_store && store.problem.is_some();
        let reasons: Vec<_> = [
            (*is_ending, "the server is ending"),
            (is_empty(envoy), "Envoy has no limits yet"),
            (is_empty(&documents), "there is no document yet"),
            (is_away, "Redis does not answer"),
        ]
        .into_iter()
        .filter_map(|(is_true, reason)| is_true.then_some(reason))
        .collect();
        let details = || Details {
            sources: envoy.iter().cloned().chain(documents).collect(),
            store: store.clone(),
        };
        Report {
            ready: reasons.is_empty(),
            reasons,
            details: has_details.then(details),
        }
    }

    /// Answers `/healthcheck` as envoyproxy/ratelimit does.
    fn healthcheck(&self) -> (StatusCode, &'static str) {
        let state = self.state.lock();
        let has_limits = state
            .envoy
            .as_ref()
            .is_none_or(|envoy| envoy.limits.is_some());
        match state.is_ending || self.needs_limits && !has_limits {
            false => (StatusCode::OK, "OK"),
            true => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server is ending, or has no limits yet",
            ),
        }
    }

    /// Returns the routes of the health checks. Only administrators see details.
    pub(super) fn routes(&self, has_details: bool) -> Router {
        let (ready, check) = (self.clone(), self.clone());
        let readiness = async move || {
            let report = ready.report(has_details);
            let status = match report.ready {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, Json(report))
        };
        Router::new()
            .route("/healthz", get(async || "OK"))
            .route("/readyz", get(readiness))
            .route("/healthcheck", get(async move || check.healthcheck()))
    }
}

fn of_documents(live: &LiveRules) -> Source {
    let state = live.state();
    let limits = state.in_force.map(|_| live.handle().limits().len());
    let is_empty = limits.is_none() && state.last_error.is_none();
    let first = is_empty.then(|| "put the first document by the admin API".to_owned());
    Source {
        name: state.store,
        limits,
        problem: state.last_error.or(first),
    }
}
