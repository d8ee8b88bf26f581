//! Rules documents: what a request costs behind ten rules, ten thousand, and a million overrides; how long they take to
//! load, and what an override takes of memory.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tower::Layer;
use tower_quota::{MemoryStore, RateLimitLayer};
use tower_quota_rules::{CodeParts, Format, Rules};

use crate::layer::contenders::{Answering, Answers, Trivial, request};
use crate::report::{Figure, Report};
use crate::timing::{in_a_process, per_item, resident, thread_seconds};

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
    for (size, figures) in Size::ALL.iter().zip(&figures) {
        let added = figures.iter().zip(&few).map(|(many, few)| many - few);
        let added: Vec<f64> = added.collect();
        let figures = [("ns", Figure::of(figures)), ("added", Figure::of(&added))];
        let case = format!("rules/request/{}", size.name());
        report.row(&case, "tower-quota", figures);
    }
    loading(quick, &mut report)?;
    Ok(report)
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
    let nanoseconds = per_item(BATCH, span, ready, |requests: Vec<_>| {
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

/// Adds the times and the bytes.
fn loading(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let times = if quick { 3 } else { 9 };
    for (size, format) in [
        (Size::Ten, "yaml"),
        (Size::TenThousand, "yaml"),
        (Size::TenThousand, "json"),
        (Size::Million, "yaml"),
        (Size::Million, "json"),
    ] {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..times {
            let asked = in_a_process(&["rules-worker", size.name(), format])?;
            figures
                .iter_mut()
                .zip(asked)
                .for_each(|(figures, figure)| figures.push(figure));
        }
        let [load, swap, bytes] = figures.map(|figures| Figure::of(&figures));
        let mut row = vec![("load ms", load), ("swap ms", swap)];
        if size == Size::Million {
            row.push(("bytes/override", bytes));
        }
        report.row(&format!("rules/load/{}", size.name()), format, row);
    }
    Ok(())
}

/// Prints the milliseconds of loading, those until a layer can use it, and the bytes per override.
pub(crate) fn worker(size: &str, format: &str) -> Result<(), Box<dyn Error>> {
    let size = Size::ALL
        .into_iter()
        .find(|known| known.name() == size)
        .ok_or("no such document")?;
    let format = match format {
        "json" => Format::Json,
        _ => Format::Yaml,
    };
    // What is the same without overrides is loaded before.
    let base = rules(&document(Size::TenThousand), Format::Yaml)?;
    let text = document(size);
    let text = if format == Format::Yaml {
        text
    } else {
        rules(&text, Format::Yaml)?.document().to_text(format)
    };
    let before = resident();
    let began = thread_seconds()?;
    let loaded = rules(&text, format)?;
    let load = thread_seconds()? - began;
    let began = thread_seconds()?;
    let layer = RateLimitLayer::new(MemoryStore::new(), loaded.policy());
    let swap = thread_seconds()? - began;
    drop(layer);
    let bytes = (resident() - before) / OVERRIDES as f64;
    drop((loaded, base));
    println!("{} {} {bytes}", load * 1e3, swap * 1e3);
    Ok(())
}

/// The size of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Ten,
    Thousand,
    TenThousand,
    Million,
}

/// Single keys with a quota of their own.
const OVERRIDES: usize = 1_000_000;

impl Size {
    const ALL: [Self; 4] = [Self::Ten, Self::Thousand, Self::TenThousand, Self::Million];

    const fn name(self) -> &'static str {
        match self {
            Self::Ten => "10-rules",
            Self::Thousand => "1k-rules",
            Self::TenThousand => "10k-rules",
            Self::Million => "10k-rules-1m-overrides",
        }
    }

    /// Returns the number of limits, two of which every request meets.
    const fn rules(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Thousand => 1_000,
            Self::TenThousand | Self::Million => 10_000,
        }
    }

    const fn routes(self) -> usize {
        self.rules() - 2
    }
}

/// Returns the key of a client. Each is one of the overridden ones, if there are any.
fn client(number: usize) -> String {
    format!("sk_prod_{:07}", number * 97 % OVERRIDES)
}

/// Returns the path of a client's requests, which meets one route.
fn path(size: Size, number: usize) -> String {
    let route = number % size.routes();
    match route % 5 {
        0 => format!("/v1/service-{route}/items"),
        1 => format!("/v1/service-{route}/items/{number}"),
        2 => format!("/v1/service-{route}/files/a/{number}"),
        3 => format!("/v2/{number}/resource-{route}"),
        _ => format!("/v3/service-{route}"),
    }
}

fn pattern(route: usize) -> String {
    match route % 5 {
        0 => format!("\"/v1/service-{route}/items\""),
        1 => format!("\"/v1/service-{route}/items/{{id}}\""),
        2 => format!("\"/v1/service-{route}/files/{{*rest}}\""),
        3 => format!("\"/v2/{{tenant}}/resource-{route}\""),
        _ => format!("\"/v3/service-{route}\", method: [GET, POST]"),
    }
}

/// Writes the document as YAML. Every request meets three of its limits.
fn document(size: Size) -> String {
    let mut text = String::from(
        "defaults: { key: [header x-api-key, client_ip] }\n\
         limits:\n\
         - { name: everyone, quota: 10000000/second, key: none }\n\
         - { name: minute, quota: 10000000/minute }\n\
         tiers:\n  \
         free: {}\n  \
         pro: { extends: free, limits: { minute: 20000000/minute } }\n\
         assign:\n\
         - { key: \"sk_free_*\", tier: free }\n\
         - { key: [\"sk_prod_*\", \"sk_live_*\"], tier: pro }\n\
         block:\n\
         - { key: \"sk_revoked_*\" }\n\
         - { network: 198.51.100.0/24 }\n\
         routes:\n",
    );
    for route in 0..size.routes() {
        let pattern = pattern(route);
        _ = writeln!(
            text,
            "- {{ match: {{ path: {pattern} }}, limits: [{{ name: route-{route}, quota: 9000000/minute }}] }}"
        );
    }
    if size == Size::Million {
        text += "overrides:\n";
        text += &overrides();
    }
    text
}

/// Writes a million overrides, with a hundred different quotas.
fn overrides() -> String {
    let mut text = String::with_capacity(64 * OVERRIDES);
    for key in 0..OVERRIDES {
        let units = 30_000_000 + key % 100;
        _ = writeln!(
            text,
            "  sk_prod_{key:07}: {{ limits: {{ minute: {units}/minute }} }}"
        );
    }
    text
}
