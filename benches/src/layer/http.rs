//! The layers over HTTP/1.1 with kept-alive connections, under wrk.

use std::error::Error;
use std::net::SocketAddr;
use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tower::layer::util::Identity;

use super::contenders::{Treatment, governor, tower_quota};
use crate::report::{Report, median, median_ratio};

const CONNECTIONS: &str = "32";

const FIELDS: [(&str, &str); 2] = [
    ("ratelimit", "\"first\";r=14999999;t=60"),
    ("ratelimit-policy", "\"first\";q=15000000;w=900000000"),
];
const MORE: [(&str, &str); 3] = [
    ("content-type", "application/problem+json"),
    ("cache-control", "no-store"),
    ("retry-after", "86400"),
];
const REFUSED: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const BODY: &str = "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
                    \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\"status\":429,\
                    \"detail\":\"Over the limit \\\"first\\\": retry in 86400 seconds.\",\
                    \"violated-policies\":[\"first\"]}";

/// An app that is being served.
struct App {
    name: &'static str,
    address: SocketAddr,
    is_admitted: bool,
}

/// Reports nothing but a notice where wrk is not installed.
pub(super) fn run(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    if Command::new("wrk").arg("-v").output().is_err() {
        eprintln!(
            "wrk is not installed (scripts/install wrk): layer/http-admitted and layer/http-refused are left out"
        );
        return Ok(());
    }
    let (rounds, seconds) = if quick { (3, "1s") } else { (9, "4s") };
    // One thread for the service, the other cores for wrk.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let bare = || Router::new().route("/", get(async || {}));
    let headers = Treatment::Headers;
    let apps = [
        ("bare", bare(), true),
        (
            "tower-quota, headers",
            bare().layer(tower_quota(headers, 1)),
            true,
        ),
        (
            "tower-quota, three limits, headers",
            bare().layer(tower_quota(headers, 3)),
            true,
        ),
        (
            "tower_governor, headers",
            bare().layer(governor(headers)?),
            true,
        ),
        (
            "tower-quota, refusing",
            bare().layer(tower_quota(Treatment::Refused, 1)),
            false,
        ),
        (
            "tower_governor, refusing",
            bare().layer(governor(Treatment::Refused)?),
            false,
        ),
        // The cost of the same answers without a decision.
        (
            "a handler that writes the fields",
            Router::new().route("/", get(async || FIELDS)),
            true,
        ),
        (
            "a layer that does nothing",
            bare().layer(Identity::new()),
            true,
        ),
        (
            "a handler that refuses",
            Router::new().route("/", get(async || (REFUSED, FIELDS, MORE, BODY))),
            false,
        ),
    ];
    let serve = |(name, app, is_admitted)| {
        Ok(App {
            name,
            address: runtime.block_on(served(app))?,
            is_admitted,
        })
    };
    let apps: Vec<App> = apps
        .into_iter()
        .map(serve)
        .collect::<Result<_, Box<dyn Error>>>()?;

    let mut rates = vec![Vec::new(); apps.len()];
    for _ in 0..rounds {
        for (app, rates) in apps.iter().zip(&mut rates) {
            rates.push(rate(app, seconds)?);
        }
    }
    for (app, rates) in apps.iter().zip(&rates) {
        report.row(
            "layer/http",
            app.name,
            vec![("requests/s", median(&mut rates.clone()))],
        );
    }
    for (case, app) in [
        ("layer/http-admitted", 1),
        ("layer/http-admitted/3-limits", 2),
        ("layer/http-refused", 4),
    ] {
        report.ratio(case, median_ratio(&rates[app], &rates[0]));
    }
    for (case, app, other) in [
        ("layer/http-admitted/handler", 1, 6),
        ("layer/http-admitted/no-op-layer", 1, 7),
        ("layer/http-refused/handler", 4, 8),
    ] {
        report.ratio(case, median_ratio(&rates[app], &rates[other]));
    }
    report.ratio(
        "layer/http-admitted/tower_governor",
        median_ratio(&rates[1], &rates[3]),
    );
    report.ratio(
        "layer/http-refused/tower_governor",
        median_ratio(&rates[4], &rates[5]),
    );
    Ok(())
}

/// Serves an app on a free port, for as long as the runtime lives.
async fn served(app: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}

/// Returns the requests per second that wrk gets answered as expected.
fn rate(app: &App, seconds: &str) -> Result<f64, Box<dyn Error>> {
    let url = format!("http://{}/", app.address);
    let output = Command::new("wrk")
        .args(["-t1", "-c", CONNECTIONS, "-d", seconds, &url])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let after = |label: &str| -> Option<f64> {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok())
    };
    let unsuccessful = after("Non-2xx or 3xx responses:").unwrap_or(0.0);
    // The first request of a layer that refuses is admitted.
    let is_as_meant = if app.is_admitted {
        unsuccessful == 0.0
    } else {
        unsuccessful > 1.0
    };
    match after("Requests/sec:") {
        Some(rate) if is_as_meant => Ok(rate),
        _ => Err(format!("{}: {text}", app.name).into()),
    }
}
