//! Rules documents: what a request costs behind ten rules, ten thousand, and a million overrides; how long they take to
//! load, and what an override takes of memory.

mod documents;
mod load;

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tower::Layer;
use tower_quota::{MemoryStore, RateLimitLayer};
use tower_quota_rules::{CodeParts, Format, Rules};

use self::documents::{Size, client, document, path};
pub(crate) use self::load::worker;
use crate::layer::service::{Answering, Answers, Trivial, request};
use crate::report::{Report, median};
use crate::timing::{Step, median_per_item};

/// Clients that ask in turn, each on one route.
const CLIENTS: usize = 10_000;

/// The step from one client to the next, a prime: neighbours in the document are not neighbours in time.
const STEP: usize = 7_919;

/// Requests that are made at a time.
const BATCH: usize = 64;

/// The most bytes of the documents.
const MAX_BYTES: usize = 256 << 20;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (rounds, span) = if quick {
        (7, Duration::from_millis(40))
    } else {
        (21, Duration::from_millis(100))
    };
    let mut report = Report::default();
    let mut services = Vec::new();
    for size in Size::ALL {
        services.push((size, behind(size)?));
    }
    let mut figures = [const { Vec::new() }; Size::ALL.len()];
    for round in 0..=rounds {
        for ((size, service), figures) in services.iter_mut().zip(&mut figures) {
            let nanoseconds =
                one_round(*size, &mut *service, span).ok_or("a request was refused")?;
            if round > 0 {
                figures.push(nanoseconds);
            }
        }
    }
    drop(services);
    let few = figures[0].clone();
    for (size, figures) in Size::ALL.iter().zip(&mut figures) {
        let mut added: Vec<f64> = figures
            .iter()
            .zip(&few)
            .map(|(many, few)| many - few)
            .collect();
        let case = format!("rules/request/{}", size.name());
        report.row(
            &case,
            "tower-quota",
            vec![("ns", median(figures)), ("added", median(&mut added))],
        );
    }
    load::measure(quick, &mut report)?;
    Ok(report)
}

/// Returns the requests of all clients behind a document of this name, one for each call.
pub(crate) fn in_turn(name: &str) -> Result<Step, Box<dyn Error>> {
    let size = *Size::ALL
        .iter()
        .find(|size| size.name() == name)
        .ok_or("no document of this name")?;
    let (mut service, mut number) = (behind(size)?, 0);
    Ok(Box::new(move || {
        number += 1;
        black_box(service.admits(request_of(size, number * STEP)));
    }))
}

/// Reads a document.
fn rules(text: &str, format: Format) -> Result<Rules, Box<dyn Error>> {
    Ok(Rules::parse_up_to(
        text,
        format,
        &CodeParts::new(),
        MAX_BYTES,
    )?)
}

fn behind(size: Size) -> Result<impl Answers, Box<dyn Error>> {
    let policy = rules(&document(size), Format::Yaml)?.policy();
    let layer = RateLimitLayer::new(MemoryStore::new(), policy).headers([]);
    let mut service = Answering(layer.layer(Trivial));
    // Every client is known, and the watch over the first requests has ended.
    for number in 0..2 * CLIENTS {
        if !service.admits(request_of(size, number)) {
            return Err("a request was refused".into());
        }
    }
    Ok(service)
}

/// Returns the nanoseconds per request; `None` if one was refused.
fn one_round(size: Size, service: &mut dyn Answers, span: Duration) -> Option<f64> {
    let (mut next, mut refused) = (0, 0);
    let ready = || -> Vec<_> {
        let numbers = (0..BATCH).map(|at| (next + at) * STEP);
        let requests = numbers.map(|number| request_of(size, number)).collect();
        next += BATCH;
        requests
    };
    let nanoseconds = median_per_item(BATCH, span, ready, |requests: Vec<_>| {
        refused += requests
            .into_iter()
            .filter_map(|request| (!service.admits(request)).then_some(()))
            .count();
    });
    (refused == 0).then_some(nanoseconds)
}

/// Creates the request of a client, on its route.
fn request_of(size: Size, number: usize) -> Request<Body> {
    let number = number % CLIENTS;
    let mut request = request();
    *request.uri_mut() = path(size, number).parse().unwrap_or_default();
    if let Ok(key) = client(number).parse() {
        request.headers_mut().insert("x-api-key", key);
    }
    request
}
