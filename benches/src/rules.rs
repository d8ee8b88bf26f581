//! Rules documents: what a request costs behind ten rules, ten thousand, and a million overrides; how long they take to
//! load, and what an override takes of memory.

use std::convert::Infallible;
use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{Request, Response};
use tower::{Layer, Service};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tower_quota_rules::{CodeParts, Rules};

use crate::Outcome;
use crate::layer::{
    Limits, Treatment, Trivial, admits, bare, behind_tower_quota, more_than_first, request,
};
use crate::report::{Cell, Report, Table};
use crate::turns::{Round, Step, in_a_process, in_turns, memory, thread_seconds};

/// Clients that send requests in turn, each on one route.
const CLIENTS: usize = 10_000;

/// The step from one client to the next, a prime: neighbours in the document are not neighbours in time.
const STEP: usize = 7_919;

/// Requests of a round.
const REQUESTS: u32 = 500;

/// The most bytes of the documents.
const MAX_BYTES: usize = 256 << 20;

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let rounds = if quick { 20 } else { 200 };
    let mut added = Table::new("ns added by a document", &["tower-quota"], rounds);
    let in_code = [bare(), behind_tower_quota(Treatment::Plain, Limits::Three)];
    added.row(
        "three limits in code, by address, one client",
        more_than_first(rounds, REQUESTS, in_code)?,
    );
    let ten = rules(&document(Size::Ten))?;
    let plain = document(Size::Ten);
    let (tiers, routes) = (plain.find("tiers:"), plain.find("routes:"));
    let (tiers, routes) = tiers.zip(routes).ok_or("no such parts")?;
    let plain = rules(&format!("{}{}", &plain[..tiers], &plain[routes..]))?;
    for (name, clients, policy) in [
        (
            "three limits in code, by a header and of everyone, one client",
            1,
            by_header(),
        ),
        ("the same, 10,000 clients", CLIENTS, by_header()),
        (
            "ten rules without tiers and blocks, one client",
            1,
            plain.policy(),
        ),
        ("ten rules, one client", 1, ten.policy()),
    ] {
        let pair = [
            requesting(Trivial, Size::Ten, clients)?,
            requesting(layer(policy).layer(Trivial), Size::Ten, clients)?,
        ];
        added.row(name, more_than_first(rounds, REQUESTS, pair)?);
    }
    for (name, size) in [
        ("ten rules", Size::Ten),
        ("1,000 rules", Size::Thousand),
        ("10,000 rules", Size::TenThousand),
        ("and a million overrides", Size::Million),
    ] {
        let policy = rules(&document(size))?.policy();
        let pair = [
            requesting(Trivial, size, CLIENTS)?,
            requesting(layer(policy).layer(Trivial), size, CLIENTS)?,
        ];
        added.row(name, more_than_first(rounds, REQUESTS, pair)?);
    }

    let rounds = if quick { 2 } else { 10 };
    let columns = ["load ms", "into a layer, ms", "bytes of an override"];
    let mut loading = Table::new("a document", &columns, rounds);
    let documents = [
        ("ten rules", Size::Ten),
        ("10,000 rules", Size::TenThousand),
        ("and a million overrides", Size::Million),
    ];
    let turns = documents.map(|(_, size)| -> Round<'_, Vec<f64>> {
        Box::new(move || in_a_process(&["rules-worker", size.name()]))
    });
    for ((name, size), rounds) in documents.iter().zip(in_turns(rounds, turns.into())?) {
        let cell = |column: usize| {
            Cell::lowest(
                &rounds
                    .iter()
                    .map(|figures| figures[column])
                    .collect::<Vec<_>>(),
            )
        };
        let most = rounds.iter().map(|figures| figures[2]).fold(0.0, f64::max);
        let bytes = (*size == Size::Million).then(|| most.into());
        loading.row(*name, [cell(0), cell(1), bytes]);
    }
    Ok(Report::of([added, loading]))
}

/// Reads a document.
fn rules(text: &str) -> Outcome<Rules> {
    Ok(Rules::parse_up_to(text, &CodeParts::new(), MAX_BYTES)?)
}

fn layer(policy: Policy) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(MemoryStore::new(), policy).headers([])
}

/// Returns the three limits of a request behind the documents, written in code.
fn by_header() -> Policy {
    let quota = Quota::per_minute(20_000_000);
    let by_client =
        |name| Limit::new(name, quota).by(key::header("x-api-key").or(key::client_ip()));
    Policy::new()
        .limit(Limit::new("everyone", Quota::per_second(10_000_000)))
        .limit(by_client("minute"))
        .limit(by_client("route"))
}

/// Returns the requests of these clients in turn, which are made within the step and admitted.
fn requesting<B: 'static>(
    mut service: impl Service<Request<Body>, Response = Response<B>, Error = Infallible> + 'static,
    size: Size,
    clients: usize,
) -> Outcome<Step> {
    // Every client is known, and the watch over the first requests has ended.
    for number in 0..2 * CLIENTS {
        if !admits(&mut service, request_of(size, number % clients)) {
            return Err("a request was refused".into());
        }
    }
    let mut next = 0;
    Ok(Box::new(move || {
        next = (next + STEP) % clients;
        assert!(
            admits(&mut service, request_of(size, next)),
            "a request was refused"
        );
    }))
}

/// Creates the request of a client, on its route.
fn request_of(size: Size, number: usize) -> Request<Body> {
    let mut request = request();
    *request.uri_mut() = path(size, number).parse().unwrap_or_default();
    if let Ok(key) = client(number).parse() {
        request.headers_mut().insert("x-api-key", key);
    }
    request
}

/// Prints the milliseconds of loading, those until a layer can use it, and the bytes per override.
pub(crate) fn worker(size: &str) -> Outcome {
    let size = Size::ALL
        .into_iter()
        .find(|known| known.name() == size)
        .ok_or("no such document")?;
    // What is the same without overrides is loaded before.
    let base = rules(&document(Size::TenThousand))?;
    let text = document(size);
    let before = memory("VmRSS:");
    let began = thread_seconds()?;
    let loaded = rules(&text)?;
    let load = thread_seconds()? - began;
    let began = thread_seconds()?;
    let layer = layer(loaded.policy());
    let swap = thread_seconds()? - began;
    drop(layer);
    let bytes = (memory("VmRSS:") - before) / OVERRIDES as f64;
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
