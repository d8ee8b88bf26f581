//! `RateLimitLayer` next to the bare service and tower_governor: the cost of a request on its way through.

pub(crate) mod contenders;
pub(crate) mod http;

use std::error::Error;
use std::time::Duration;

use self::contenders::{Answers, Treatment, bare, behind_governor, behind_tower_quota, request};
use crate::report::{Figure, Report, median, median_ratio};
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
            let case = match limits {
                1 => case.to_owned(),
                _ => format!("{case}/{limits}-limits"),
            };
            let [bare, ours, peers] = in_turns(treatment, limits, rounds, span)
                .map_err(|error| format!("{case}: {error}"))?;
            let added = |behind: &[f64]| -> Vec<f64> {
                behind
                    .iter()
                    .zip(&bare)
                    .map(|(behind, bare)| behind - bare)
                    .collect()
            };
            report.row(&case, "bare", [("ns", Figure::of(&bare))]);
            for (contender, figures) in [("tower-quota", &ours), ("tower_governor", &peers)] {
                let figures = [
                    ("ns", Figure::of(figures)),
                    ("added", Figure::of(&added(figures))),
                ];
                report.row(&case, contender, figures);
            }
            // A refusal spares the bare service, so all of it is compared.
            if treatment == Treatment::Refused {
                report.ratio(&case, median_ratio(&peers, &ours));
                let of_admitted = median(&admitted) / median(&ours);
                report.ratio(format!("{case}/of-admitted"), of_admitted);
            } else {
                report.ratio(&case, median_ratio(&added(&peers), &added(&ours)));
            }
            if treatment == Treatment::Headers {
                admitted = ours;
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
    // The first request of a layer that refuses is still admitted.
    for service in &mut services {
        service.admits(request());
    }
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..=rounds {
        for (position, service) in services.iter_mut().enumerate() {
            let is_admitted = position == 0 || treatment != Treatment::Refused;
            let nanoseconds = one_round(&mut **service, is_admitted, span)?;
            if round > 0 {
                figures[position].push(nanoseconds);
            }
        }
    }
    Ok(figures)
}

/// Returns the nanoseconds per request, or an error if an answer was not the expected one.
fn one_round(
    service: &mut dyn Answers,
    is_admitted: bool,
    span: Duration,
) -> Result<f64, &'static str> {
    let mut unexpected = 0;
    let prepare = || -> Vec<_> { (0..BATCH).map(|_| request()).collect() };
    let nanoseconds = per_item(BATCH, span, prepare, |requests| {
        for request in requests {
            unexpected += usize::from(service.admits(request) != is_admitted);
        }
    });
    if unexpected > 0 {
        return Err("an unexpected answer");
    }
    Ok(nanoseconds)
}
