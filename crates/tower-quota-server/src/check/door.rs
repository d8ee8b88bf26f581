//! The routes of checks.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use tower_quota::settle::Reservation;
use tower_quota::{Decision, Name};

use super::answer::Answer;
use super::call::Call;
use super::commit::{Commit, Committed};
use super::reservations::Reservations;
use crate::http::{Gate, HttpOptions, Problem, json, openapi, read};

struct Door {
    gate: Gate,
    options: HttpOptions,
    reservations: Arc<Reservations>,
}

/// Builds the routes `/v1/check`, `/v1/check/{id}/commit` and `/v1/openapi.json`.
///
/// When you drop the router, its open reservations are refunded.
pub fn router(gate: &Gate, options: &HttpOptions) -> Router {
    routes(gate, options).0
}

/// Builds the routes, and returns the open reservations.
pub(crate) fn routes(gate: &Gate, options: &HttpOptions) -> (Router, Arc<Reservations>) {
    let reservations = Arc::new(Reservations::new(gate.clock(), options));
    let door = Door {
        gate: gate.clone(),
        options: options.clone(),
        reservations: Arc::clone(&reservations),
    };
    let router = Router::new()
        .route("/v1/check", post(check))
        .route("/v1/check/{id}/commit", post(commit))
        .route("/v1/openapi.json", get(async || Json(openapi())))
        .with_state(Arc::new(door));
    (router, reservations)
}

async fn check(State(door): State<Arc<Door>>, request: Request) -> Result<Json<Answer>, Problem> {
    let (fields, body) = read(request, &door.options).await?;
    let call: Call = json(&fields, &body)?;
    let (request, time) = (call.request()?, call.reserved_time(&door.options)?);
    if call.peek {
        let (status, decision) = door.gate.peek(&request).await?;
        return answer(&call, Answer::of(status, decision.as_ref()), status);
    }
    let place = match time {
        Some(_) => Some(door.reservations.place(body.len())?),
        None => None,
    };
    let mut response = door.gate.decide(request).await;
    let mut answered = Answer::decided(&response);
    if let Some(charges) = response.extensions_mut().remove::<Reservation>() {
        match (time, place) {
            (Some(time), Some(place)) => {
                let estimates = estimates(response.extensions().get(), &charges);
                let opened = door.reservations.open(charges, estimates, time, place);
                answered.reservation = Some(opened?);
            }
            _ => charges.keep(),
        }
    }
    answer(&call, answered, response.status())
}

/// Returns the answer, unless the call lacks the address that a limit needs.
fn answer(call: &Call, answer: Answer, status: StatusCode) -> Result<Json<Answer>, Problem> {
    if status == StatusCode::INTERNAL_SERVER_ERROR && call.address.is_none() {
        return Err(Problem::invalid(
            "the limits cannot decide this request: send the `address` of the client",
        ));
    }
    Ok(Json(answer))
}

/// Returns the limits that settle, with their estimates.
fn estimates(decision: Option<&Decision>, charges: &Reservation) -> Vec<(Name, u64)> {
    let statuses = decision.map_or(&[][..], Decision::statuses).iter();
    let estimate = |name: Name| {
        let estimate = charges.estimate(name.as_str())?;
        // Limits `at once` have no cost to set. The cost of the others is set again later.
        charges.settle(name.as_str(), 0).then_some((name, estimate))
    };
    statuses
        .filter_map(|status| estimate(status.name))
        .collect()
}

async fn commit(
    State(door): State<Arc<Door>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Committed>, Problem> {
    let (fields, body) = read(request, &door.options).await?;
    let commit: Commit = json(&fields, &body)?;
    // A path that is not UTF-8 has no id.
    let id = id.map_or_else(|_| String::new(), |Path(id)| id);
    let held = door.reservations.end(&id, |held| commit.check(held))?;
    Ok(Json(commit.settle(&held)))
}
