//! `RateLimitLayer` beside the bare service and tower_governor: what a request costs on its way through.

pub(crate) mod contenders;
mod http;
pub(crate) mod one_connection;
pub(crate) mod service;

use std::error::Error;
use std::time::Duration;

use self::contenders::{Treatment, bare, behind_governor, behind_tower_quota};
use self::service::{Answers, request};
use crate::report::{Report, median, median_ratio};
use crate::timing::per_item;

const TREATMENTS: [(Treatment, &str); 4] = [
    (Treatment::Plain, "layer/plain"),
    (Treatment::SameFields, "layer/same-fields"),
    (Treatment::Headers, "layer/headers"),
    (Treatment::Refused, "layer/refused"),
];

/// Requests that are made at a time.
const BATCH: usize = 64;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (rounds, span) = if quick {
        (7, Duration::from_millis(20))
    } else {
        (21, Duration::from_millis(60))
    };
    let mut report = Report::default();
    let mut admitted = Vec::new();
    for limits in [1, 3] {
        for (treatment, case) in TREATMENTS {
            let case = if limits == 1 {
                case.to_owned()
            } else {
                format!("{case}/{limits}-limits")
            };
            let figures = in_turns(treatment, limits, rounds, span)
                .map_err(|error| format!("{case}: {error}"))?;
            let [bare, ours, peers] = &figures;
            report.row(&case, "bare", vec![("ns", middle(bare))]);
            report.row(
                &case,
                "tower-quota",
                vec![("ns", middle(ours)), ("added", middle(&added(ours, bare)))],
            );
            report.row(
                &case,
                "tower_governor",
                vec![
                    ("ns", middle(peers)),
                    ("added", middle(&added(peers, bare))),
                ],
            );
            // The bare service's share belongs to neither, but a refusal spares it.
            if treatment == Treatment::Refused {
                report.ratio(&case, median_ratio(peers, ours));
                report.ratio(
                    format!("{case}/of-admitted"),
                    middle(&admitted) / middle(ours),
                );
            } else {
                report.ratio(&case, median_ratio(&added(peers, bare), &added(ours, bare)));
            }
            if treatment == Treatment::Headers {
                admitted = ours.clone();
            }
        }
    }
    http::run(quick, &mut report)?;
    Ok(report)
}

/// Measures the nanoseconds per request in each round: bare, behind tower-quota, behind tower_governor.
fn in_turns(
    treatment: Treatment,
    limits: usize,
    rounds: usize,
    span: Duration,
) -> Result<[Vec<f64>; 3], Box<dyn Error>> {
    let mut services = [
        bare(),
        behind_tower_quota(treatment, limits),
        behind_governor(treatment, limits)?,
    ];
    // Where requests are refused, the first one is still admitted.
    services
        .iter_mut()
        .for_each(|service| _ = service.admits(request()));
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..=rounds {
        for (position, service) in services.iter_mut().enumerate() {
            let is_admitted = position == 0 || treatment != Treatment::Refused;
            let nanoseconds = one_round(&mut **service, is_admitted, span)
                .ok_or("an answer that was not meant")?;
            if round > 0 {
                figures[position].push(nanoseconds);
            }
        }
    }
    Ok(figures)
}

/// Returns the nanoseconds per request, after a quarter of a round to warm the caches.
///
/// `None` if an answer was not the expected one.
fn one_round(service: &mut dyn Answers, is_admitted: bool, span: Duration) -> Option<f64> {
    let mut unexpected = 0;
    let mut run = |span| {
        let ready = || -> Vec<_> { (0..BATCH).map(|_| request()).collect() };
        per_item(BATCH, span, ready, |requests| {
            unexpected += requests
                .into_iter()
                .filter_map(|request| (service.admits(request) != is_admitted).then_some(()))
                .count();
        })
    };
    run(span / 4);
    let nanoseconds = run(span);
    (unexpected == 0).then_some(nanoseconds)
}

fn added(behind: &[f64], bare: &[f64]) -> Vec<f64> {
    behind
        .iter()
        .zip(bare)
        .map(|(behind, bare)| behind - bare)
        .collect()
}

fn middle(figures: &[f64]) -> f64 {
    median(&mut figures.to_vec())
}
