//! `RateLimitLayer` next to tower_governor, around a service that does nothing: what they add to a request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use axum::routing::get;
use governor::middleware::{NoOpMiddleware, RateLimitingMiddleware, StateInformationMiddleware};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tower::{Layer, Service};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::{GlobalKeyExtractor, KeyExtractor, PeerIpKeyExtractor};
use tower_quota::{HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Reset, key};
use tower_quota_core::{Charge, Key, Name, RefusalCache, RefusalCheck, Store};
use tower_quota_testkit::{ManualClock, ModelStore, SharedStore, block_on};

use crate::Outcome;
use crate::report::{Cell, Report, Table};
use crate::turns::{Step, in_turns, steps};

/// The treatment of requests behind a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Admitted, without header fields.
    Plain,
    /// Admitted, with the layer's default header fields: five of tower-quota, three of tower_governor.
    Headers,
    /// Admitted, with the `X-RateLimit` fields alone: three of tower-quota, two of tower_governor.
    SameFields,
    /// Refused, with the default fields.
    Refused,
}

use Treatment::{Headers, Plain, Refused, SameFields};

/// The limits of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    One,
    /// Three limits by the address of the client.
    Three,
    /// A limit by the address of the client, and a limit of everyone.
    WithEveryone,
}

use Limits::{One, Three, WithEveryone};

/// Requests of a round.
const REQUESTS: u32 = 1_000;

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let rounds = if quick { 20 } else { 300 };
    let columns = ["tower-quota", "tower_governor"];
    let mut added = Table::new("ns added to a request", &columns, rounds).next_to("tower_governor");
    for (name, treatment, limits) in [
        ("no fields", Plain, One),
        ("the same fields", SameFields, One),
        ("default fields", Headers, One),
        ("client and everyone, no fields", Plain, WithEveryone),
        ("client and everyone, default fields", Headers, WithEveryone),
        ("three limits, no fields", Plain, Three),
        ("three limits, the same fields", SameFields, Three),
        ("three limits, default fields", Headers, Three),
    ] {
        let contenders = [
            bare(),
            behind_tower_quota(treatment, limits),
            behind_governor(treatment, limits)?,
        ];
        added.row(name, more_than_first(rounds, REQUESTS, contenders)?);
    }
    // A refusal spares the service, so only the making of the request is subtracted.
    let mut refused = Table::new("ns of a refusal", &columns, rounds).next_to("tower_governor");
    for (name, limits) in [("one limit", One), ("three limits", Three)] {
        let contenders = [
            making(),
            behind_tower_quota(Refused, limits),
            behind_governor(Refused, limits)?,
        ];
        refused.row(name, more_than_first(rounds, REQUESTS, contenders)?);
    }
    let contenders = [
        making(),
        behind_tower_quota(Headers, One),
        behind_governor(Headers, One)?,
    ];
    let admitted = more_than_first(rounds, REQUESTS, contenders)?;
    refused.row("an admission, to compare", admitted);
    // A client that a shared store has refused before. The call of the store is spared.
    for (name, limits) in [
        ("one limit, a known refusal", One),
        ("three limits, known refusals", Three),
    ] {
        let contenders = [making(), behind_known_refusals(limits)];
        refused.row(name, more_than_first(rounds, REQUESTS, contenders)?);
    }
    let contenders = [Box::new(|| {}), known_check()?];
    let check = more_than_first(rounds, REQUESTS, contenders)?;
    refused.row("a known refusal, the check alone", check);

    let mut http = Table::new(
        "µs over HTTP/1.1",
        &["bare", "tower-quota", "tower_governor"],
        rounds,
    );
    for (name, treatment) in [("admitted, default fields", Headers), ("refused", Refused)] {
        let answers = [
            over_http(app())?,
            over_http(app().layer(tower_quota(treatment, One)))?,
            over_http(app().layer(governor(PeerIpKeyExtractor, treatment, with_fields)?))?,
        ];
        let contenders = answers.map(|step| steps(REQUESTS / 20, step));
        let figures = in_turns(rounds, contenders.into())?;
        let micros = |rounds: &Vec<f64>| rounds.iter().map(|ns| ns / 1e3).collect::<Vec<_>>();
        http.row(
            name,
            figures.iter().map(|rounds| Cell::lowest(&micros(rounds))),
        );
    }
    Ok(Report::of([added, refused, http]))
}

/// Runs contenders in turns. Returns by how much the others exceed the first one.
pub(crate) fn more_than_first<const N: usize>(
    rounds: usize,
    count: u32,
    contenders: [Step; N],
) -> Outcome<Vec<Option<Cell>>> {
    let contenders = contenders.map(|step| steps(count, step));
    let figures = in_turns(rounds, contenders.into())?;
    let cells: Vec<_> = figures
        .iter()
        .filter_map(|rounds| Cell::lowest(rounds))
        .collect();
    let (first, others) = cells.split_first().ok_or("no contender")?;
    Ok(others.iter().map(|cell| Some(cell.above(*first))).collect())
}

/// Returns the burst of each limit, and the time in which one unit comes back.
const fn allowance(treatment: Treatment) -> (u32, Duration) {
    match treatment {
        Plain | Headers | SameFields => (60_000_000, Duration::from_secs(10)),
        Refused => (1, Duration::from_secs(86_400)),
    }
}

fn quota(treatment: Treatment) -> Quota {
    let (burst, unit) = allowance(treatment);
    Quota::new(1, unit).burst(u64::from(burst))
}

fn policy(treatment: Treatment, limits: Limits) -> Policy {
    let quota = quota(treatment);
    let by_client = |name| Limit::new(name, quota).by(key::client_ip());
    let first = Policy::new().limit(by_client("first"));
    match limits {
        One => first,
        Three => first.limit(by_client("second")).limit(by_client("third")),
        WithEveryone => first.limit(Limit::new("everyone", quota)),
    }
}

pub(crate) fn tower_quota(treatment: Treatment, limits: Limits) -> RateLimitLayer<MemoryStore> {
    let layer = RateLimitLayer::new(MemoryStore::new(), policy(treatment, limits));
    match treatment {
        Plain => layer.headers([]),
        SameFields => layer.headers([HeaderStyle::XRateLimit(Reset::Delta)]),
        Headers | Refused => layer,
    }
}

type Config<K, M> = GovernorConfigBuilder<K, M>;

fn with_fields<K: KeyExtractor>(
    mut builder: Config<K, NoOpMiddleware>,
) -> Config<K, StateInformationMiddleware> {
    builder.use_headers()
}

fn governor<K: KeyExtractor, M: RateLimitingMiddleware<governor::clock::QuantaInstant>>(
    extractor: K,
    treatment: Treatment,
    fields: impl Fn(Config<K, NoOpMiddleware>) -> Config<K, M>,
) -> Outcome<GovernorLayer<K, M, Body>> {
    let (burst, unit) = allowance(treatment);
    let mut builder = GovernorConfigBuilder::default();
    let config = fields(
        builder
            .period(unit)
            .burst_size(burst)
            .key_extractor(extractor),
    )
    .finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// Returns requests to the bare service.
pub(crate) fn bare() -> Step {
    requesting(Trivial)
}

/// Returns requests that are made and dropped.
pub(crate) fn making() -> Step {
    Box::new(|| drop(request()))
}

/// Returns requests to the service behind tower-quota.
pub(crate) fn behind_tower_quota(treatment: Treatment, limits: Limits) -> Step {
    requesting(tower_quota(treatment, limits).layer(Trivial))
}

/// A cache that never asks the store again about a refusal.
fn known_refusals() -> RefusalCache<SharedStore<ModelStore>> {
    let store = ModelStore::with_clock(ManualClock::default());
    RefusalCache::new(SharedStore(store)).max_age(Duration::from_secs(86_400))
}

/// Returns requests of a client whose refusal the layer knows, with the default fields.
fn behind_known_refusals(limits: Limits) -> Step {
    let policy = policy(Refused, limits);
    requesting(RateLimitLayer::with_refusal_cache(known_refusals(), policy).layer(Trivial))
}

/// Returns checks of a key whose refusal a cache knows, without a layer.
fn known_check() -> Outcome<Step> {
    let (cache, quota) = (known_refusals(), quota(Refused));
    let key = Key::number(Name::new("client"), 7);
    let admitted = block_on(cache.check(&[Charge::new("first", &quota, &key)]))?;
    let refused = block_on(cache.check(&[Charge::new("first", &quota, &key)]))?;
    assert!(admitted.is_allowed() && !refused.is_allowed());
    Ok(Box::new(move || {
        let charges = [Charge::new("first", &quota, &key)];
        let check = cache.begin(black_box(&charges));
        assert!(matches!(&check, RefusalCheck::Refused(_)), "not known");
        drop(black_box(check));
    }))
}

/// Returns requests to an axum app of one route behind tower-quota, without header fields.
pub(crate) fn routed(limits: Limits) -> Step {
    requesting(app().layer(tower_quota(Plain, limits)))
}

fn app() -> Router {
    Router::new().route("/", get(async || {}))
}

/// Returns requests to the service behind tower_governor, a layer for each limit.
pub(crate) fn behind_governor(treatment: Treatment, limits: Limits) -> Outcome<Step> {
    macro_rules! behind {
        ($fields:expr) => {{
            let by_client = || governor(PeerIpKeyExtractor, treatment, $fields);
            let first = by_client()?;
            match limits {
                One => requesting(first.layer(Trivial)),
                Three => requesting(first.layer(by_client()?.layer(by_client()?.layer(Trivial)))),
                WithEveryone => {
                    let everyone = governor(GlobalKeyExtractor, treatment, $fields)?;
                    requesting(first.layer(everyone.layer(Trivial)))
                }
            }
        }};
    }
    Ok(if treatment == Plain {
        behind!(|builder| builder)
    } else {
        behind!(with_fields)
    })
}

/// Returns requests of one client to a service, which are made within the step. All of them should be treated alike.
fn requesting<B: 'static>(
    mut service: impl Service<Request<Body>, Response = Response<B>, Error = Infallible> + 'static,
) -> Step {
    // The first request of a layer that refuses is admitted.
    admits(&mut service, request());
    let first = admits(&mut service, request());
    Box::new(move || {
        assert_eq!(
            admits(&mut service, request()),
            first,
            "treated differently"
        )
    })
}

/// Sends a request to a service that answers without waiting. Returns whether the answer was a success.
pub(crate) fn admits<B>(
    service: &mut impl Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    request: Request<Body>,
) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    if service.poll_ready(&mut context).is_pending() {
        return false;
    }
    match pin!(service.call(request)).poll(&mut context) {
        Poll::Ready(Ok(response)) => response.status().is_success(),
        Poll::Pending => false,
    }
}

/// Answers with an empty body.
#[derive(Clone)]
pub(crate) struct Trivial;

impl Service<Request<Body>> for Trivial {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::empty())))
    }
}

/// Creates a request as axum passes it on, with the peer's address attached.
pub(crate) fn request() -> Request<Body> {
    let mut request = Request::new(Body::empty());
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4_321))));
    request
}

/// Sends requests over one connection to an app. Both run on one thread, so the figure has the CPU time of both.
pub(crate) fn over_http(app: Router) -> Outcome<Step> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut stream = runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        TcpStream::connect(address).await
    })?;
    Ok(Box::new(move || {
        let answer = runtime.block_on(async {
            let mut answer = [0; 4_096];
            stream
                .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .await?;
            let read = stream.read(&mut answer).await?;
            Ok::<bool, std::io::Error>(answer[..read].starts_with(b"HTTP/1.1 "))
        });
        assert!(matches!(answer, Ok(true)), "an unexpected answer");
    }))
}
