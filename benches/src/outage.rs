//! An outage of Redis, in which a thousand clients at their limit go on sending.

use std::error::Error;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{Limit, OnStoreFailure, Policy, Quota, RateLimitLayer, RedisStore, key};
use tower_quota_testkit::RedisServer;

use crate::layer::service::{Trivial, request};
use crate::report::Report;
use crate::timing::{now, rest};

const CLIENTS: usize = 1_000;
/// One unit a second: a refusal in the cache lasts a second.
const QUOTA: Quota = Quota::per_minute(60);
/// Requests of each client a second: four times its quota.
const LOAD: usize = 4;
const HEADER: &str = "x-client";

/// Measures what passes, for each choice of a limit.
pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let lasts = Duration::from_secs(if quick { 2 } else { 5 });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report::default();
    for (name, choice) in [
        ("local", OnStoreFailure::Local),
        ("allow", OnStoreFailure::Allow),
        ("refuse", OnStoreFailure::Refuse),
    ] {
        let Figures {
            asked,
            admitted,
            uncounted,
        } = runtime.block_on(one(choice, lasts))?;
        let uncounted = uncounted as f64 * 100.0 / asked as f64;
        if choice == OnStoreFailure::Local {
            report.ratio("outage/counted", 1.0 - uncounted / 100.0);
        }
        let figures = vec![
            ("asked", asked as f64),
            ("admitted", admitted as f64),
            ("uncounted %", uncounted),
        ];
        report.row(&format!("outage/{name}"), "tower-quota", figures);
    }
    Ok(report)
}

/// The requests of all clients in an outage.
struct Figures {
    asked: usize,
    admitted: usize,
    /// Those admitted beyond the units that time has given back to their clients.
    uncounted: usize,
}

async fn one(choice: OnStoreFailure, lasts: Duration) -> Result<Figures, Box<dyn Error>> {
    let mut server = RedisServer::start();
    let limit = Limit::new("minute", QUOTA)
        .by(key::header(HEADER))
        .on_store_failure(choice);
    let store = RedisStore::connect(&server.url()).await?;
    let service = RateLimitLayer::new(store, Policy::new().limit(limit)).layer(Trivial);
    let admits = async |client: usize| {
        let Ok(response) = service.clone().oneshot(request_of(client)).await;
        response.status().is_success()
    };
    // Until each is refused; and once more, for what the first have earned while the last were asking.
    let mut refused_at = vec![now(); CLIENTS];
    for client in (0..CLIENTS).chain(0..CLIENTS) {
        while admits(client).await {}
        refused_at[client] = now();
    }
    server.kill();
    let (began, mut asked, mut admitted) = (now(), 0, vec![0; CLIENTS]);
    while now() - began < lasts {
        let due = ((now() - began).as_secs_f64() * (CLIENTS * LOAD) as f64) as usize;
        for request in asked..due {
            admitted[request % CLIENTS] += usize::from(admits(request % CLIENTS).await);
        }
        asked = due;
        rest(Duration::from_millis(1)).await;
    }
    // A unit a second, and the one of which each may have had a part.
    let earned = |refused_at: Instant| (now() - refused_at).as_secs() as usize + 1;
    let uncounted = admitted
        .iter()
        .zip(refused_at)
        .map(|(admitted, at)| admitted.saturating_sub(earned(at)))
        .sum();
    Ok(Figures {
        asked,
        admitted: admitted.iter().sum(),
        uncounted,
    })
}

fn request_of(client: usize) -> Request<Body> {
    let mut request = request();
    if let Ok(value) = format!("client-{client}").parse() {
        request.headers_mut().insert(HEADER, value);
    }
    request
}
