//! The layers over HTTP/1.1 with kept-alive connections, under wrk.

use std::error::Error;
use std::net::SocketAddr;
use std::process::Command;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

use super::contenders::{Treatment, governor, tower_quota};
use crate::report::{Figure, Report, median_ratio};
use crate::timing::Step;

const CONNECTIONS: &str = "32";

/// The fields and the body of tower-quota, for handlers that write them without a decision.
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

/// Reports nothing but a notice where wrk is not installed.
pub(super) fn run(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    if Command::new("wrk").arg("-v").output().is_err() {
        eprintln!("wrk is not installed (scripts/install wrk): the cases over HTTP are left out");
        return Ok(());
    }
    let (rounds, seconds) = if quick { (3, "1s") } else { (6, "4s") };
    // One thread for the service, the other cores for wrk.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let bare = || Router::new().route("/", get(async || {}));
    let (headers, refused) = (Treatment::Headers, Treatment::Refused);
    let writing = get(async || FIELDS);
    let refusing = get(async || (REFUSED, FIELDS, MORE, BODY));
    let apps = [
        ("bare", bare(), true),
        ("tower-quota", bare().layer(tower_quota(headers, 1)), true),
        ("tower_governor", bare().layer(governor(headers)?), true),
        (
            "a handler, same answer",
            Router::new().route("/", writing),
            true,
        ),
        ("tower-quota", bare().layer(tower_quota(refused, 1)), false),
        ("tower_governor", bare().layer(governor(refused)?), false),
        (
            "a handler, same answer",
            Router::new().route("/", refusing),
            false,
        ),
    ];
    let mut served = Vec::new();
    for (name, app, is_admitted) in apps {
        served.push((name, runtime.block_on(serve(app))?, is_admitted));
    }
    let mut rates = vec![Vec::new(); served.len()];
    for _ in 0..rounds {
        for ((name, address, is_admitted), rates) in served.iter().zip(&mut rates) {
            let rate = rate(*address, *is_admitted, seconds);
            rates.push(rate.map_err(|error| format!("{name}: {error}"))?);
        }
    }
    for ((name, _, is_admitted), rates) in served.iter().zip(&rates) {
        let case = if *is_admitted { "admitted" } else { "refused" };
        let figures = [("requests/s", Figure::of(rates))];
        report.row(&format!("layer/http-{case}"), name, figures);
    }
    for (case, app, other) in [
        ("layer/http-admitted", 1, 0),
        ("layer/http-admitted/handler", 1, 3),
        ("layer/http-admitted/tower_governor", 1, 2),
        ("layer/http-refused/handler", 4, 6),
        ("layer/http-refused/tower_governor", 4, 5),
    ] {
        report.ratio(case, median_ratio(&rates[app], &rates[other]));
    }
    Ok(())
}

/// Serves an app on a free port, for as long as the runtime lives.
async fn serve(app: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}

/// Returns the requests per second for which wrk gets the expected answer.
fn rate(address: SocketAddr, is_admitted: bool, seconds: &str) -> Result<f64, Box<dyn Error>> {
    let url = format!("http://{address}/");
    let output = Command::new("wrk")
        .args(["-t1", "-c", CONNECTIONS, "-d", seconds, &url])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let after = |label: &str| -> Option<f64> {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))?;
        line.trim().parse().ok()
    };
    let unsuccessful = after("Non-2xx or 3xx responses:").unwrap_or(0.0);
    // The first request of a layer that refuses is admitted.
    let is_expected = if is_admitted {
        unsuccessful == 0.0
    } else {
        unsuccessful > 1.0
    };
    match after("Requests/sec:") {
        Some(rate) if is_expected => Ok(rate),
        _ => Err(text.into()),
    }
}

/// Sends requests over one connection to a service behind the layer, both on one thread.
pub(crate) fn requesting() -> Result<Step, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut stream = runtime.block_on(async {
        let app = Router::new().route("/", get(async || "hello"));
        let address = serve(app.layer(tower_quota(Treatment::Headers, 1))).await?;
        Ok::<_, Box<dyn Error>>(TcpStream::connect(address).await?)
    })?;
    Ok(Box::new(move || {
        let answer = runtime.block_on(async {
            let mut answer = [0; 4_096];
            stream
                .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .await?;
            let read = stream.read(&mut answer).await?;
            Ok::<bool, std::io::Error>(answer[..read].ends_with(b"hello"))
        });
        assert!(matches!(answer, Ok(true)), "an unexpected answer");
    }))
}
