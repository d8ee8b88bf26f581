//! An outage of Redis, in which a thousand clients at their limit go on sending requests.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{Limit, OnStoreFailure, Policy, Quota, RateLimitLayer, RedisStore, key};

use crate::Outcome;
use crate::layer::{Trivial, request};
use crate::report::{Report, Table};
use crate::turns::{now, rest};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};

const CLIENTS: usize = 1_000;
/// One unit a second: a refusal in the cache lasts a second.
const QUOTA: Quota = Quota::per_minute(60);
/// Requests of each client a second: four times its quota.
const LOAD: usize = 4;
const HEADER: &str = "x-client";

/// The seconds before the outage, in the outage and after the outage.
pub(crate) const SECONDS: [f64; 3] = [2.0, 5.0, 3.0];
/// The points of a timeline in a second.
pub(crate) const POINTS: f64 = 4.0;

/// Measures what passes, for each choice of a limit. A short run would measure another outage, so there is none.
pub(crate) fn run(_quick: bool) -> Outcome<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut table = Table::new("choice", &["requests", "admitted", "uncounted %"], 1);
    let mut report = Report::default();
    for (name, choice) in [
        ("allow", OnStoreFailure::Allow),
        ("local", OnStoreFailure::Local),
        ("refuse", OnStoreFailure::Refuse),
    ] {
        let outage = runtime.block_on(one(choice))?;
        let (asked, admitted) = (outage.asked as f64, outage.admitted as f64);
        let uncounted = outage.uncounted as f64 * 100.0 / asked;
        table.row(
            name,
            [asked, admitted, uncounted].map(|figure| Some(figure.into())),
        );
        report.timelines.insert(name.to_owned(), outage.timeline);
    }
    report.tables.push(table);
    Ok(report)
}

/// The requests of all clients in an outage.
struct Outage {
    asked: usize,
    admitted: usize,
    /// Requests admitted beyond the units that time has given back to their clients.
    uncounted: usize,
    /// The admitted requests a second, from before the outage until after the outage.
    timeline: Vec<f64>,
}

async fn one(choice: OnStoreFailure) -> Outcome<Outage> {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let limit = Limit::new("minute", QUOTA)
        .by(key::header(HEADER))
        .on_store_failure(choice);
    let store = RedisStore::connect(&proxy.url()).await?;
    let service = RateLimitLayer::new(store, Policy::new().limit(limit)).layer(Trivial);
    let admits = async |client: usize| {
        let Ok(response) = service.clone().oneshot(request_of(client)).await;
        response.status().is_success()
    };
    // Each client sends requests until it is refused. The first clients earn units while the last ones do so.
    let mut refused_at = vec![now(); CLIENTS];
    for client in (0..CLIENTS).chain(0..CLIENTS) {
        while admits(client).await {}
        refused_at[client] = now();
    }
    let [before, during, after] = SECONDS;
    let mut timeline = vec![0.0; ((before + during + after) * POINTS) as usize];
    let (mut asked, mut admitted) = (0, vec![0; CLIENTS]);
    let (mut sent, began) = (0, now());
    let elapsed = || (now() - began).as_secs_f64();
    while elapsed() < before + during + after {
        let second = elapsed();
        let is_outage = (before..before + during).contains(&second);
        if is_outage && proxy.fault().is_none() {
            proxy.inflict(Fault::Refuse);
        } else if second >= before + during {
            proxy.heal();
        }
        let due = (second * (CLIENTS * LOAD) as f64) as usize;
        for client in (sent..due).map(|request| request % CLIENTS) {
            let is_admitted = admits(client).await;
            if is_admitted && let Some(point) = timeline.get_mut((elapsed() * POINTS) as usize) {
                *point += POINTS;
            }
            if is_outage {
                asked += 1;
                admitted[client] += usize::from(is_admitted);
            } else if !is_admitted && second < before {
                refused_at[client] = now();
            }
        }
        sent = due;
        rest(Duration::from_millis(1)).await;
    }
    // A unit a second until the end of the outage, and the unit of which a client may have had a part.
    let end = began + Duration::from_secs_f64(before + during);
    let earned = |refused_at: Instant| (end - refused_at).as_secs() as usize + 1;
    let uncounted = admitted.iter().zip(refused_at);
    let uncounted = uncounted.map(|(admitted, at)| admitted.saturating_sub(earned(at)));
    Ok(Outage {
        asked,
        uncounted: uncounted.sum(),
        admitted: admitted.iter().sum(),
        timeline,
    })
}

fn request_of(client: usize) -> Request<Body> {
    let mut request = request();
    if let Ok(value) = format!("client-{client}").parse() {
        request.headers_mut().insert(HEADER, value);
    }
    request
}
