//! Adds an admin port to a service. Operators look up, reset and block clients, grant units, and change the quota while
//! requests run.
//!
//! On SIGTERM the service refuses waiting requests, finishes running requests, and then closes the store.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example operations
//!
//! The admin port answers every caller. In the example, only programs on the local machine can connect. Authenticate
//! the callers if you listen on another address. Copy `rules_in_consul/serve_admin/mod.rs` too, which bounds slow clients of the port.
//!
//! The service listens on 127.0.0.1:3000, and the admin port is 3001. Set `PORT` and `ADMIN_PORT` to choose other
//! ports, or to 0 for any free port. Set `REDIS_URL` to keep the counters in Redis instead of in memory.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "redis", "top"] }
//!     axum = "0.8"
//!     hyper = { version = "1", features = ["http1", "server"] }
//!     hyper-util = { version = "0.1", features = ["service", "tokio"] }
//!     serde_json = "1"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "signal", "sync"] }

#[path = "rules_in_consul/serve_admin/mod.rs"]
mod serve_admin;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{HOST, ORIGIN};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower_quota::{
    BoxStore, HandleError, Limit, LimitStatus, MemoryStore, Policy, Quota, RateLimitHandle,
    RateLimitLayer, RedisStore, Store, TopWindow, key, store::BoxStoreError, when,
};

use crate::serve_admin::serve_admin;

/// The deadline of settlements and refunds at shutdown. Kubernetes kills the process after 30 s.
const STORE_DEADLINE: Duration = Duration::from_secs(5);

type Limits = RateLimitHandle<BoxStore>;

/// Returns the policy with a quota that operators can change.
fn policy(per_minute: u64) -> Option<Policy> {
    let minute = Quota::try_new(per_minute, Duration::from_secs(60)).ok()?;
    let policy = Policy::new()
        .limit(
            Limit::new("minute", minute)
                .by(key::header("x-api-key").or(key::client_ip()))
                .unless(when::path("/slow")),
        )
        // A client could send a new key with every request, so limit the address too.
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()))
        // Keeps a single client from filling the queue of `slow`.
        .limit(
            Limit::new("slow-client", Quota::per_minute(1).burst(2))
                .by(key::client_ip())
                .when(when::path("/slow")),
        )
        // Admits a request every 20 seconds. Requests wait for at most a minute.
        .limit(
            Limit::new("slow", Quota::per_minute(3).leaky_bucket())
                .when(when::path("/slow"))
                .max_wait(Duration::from_secs(60)),
        );
    Some(policy)
}

fn admin(limits: Limits) -> Router {
    Router::new()
        .route(
            "/limits",
            get(async |State(limits): State<Limits>| {
                json_of(limits.limits().iter().map(|name| json!(name.as_str())))
            }),
        )
        .route("/refused", get(refused))
        .route(
            "/waiting",
            get(async |State(limits): State<Limits>| limits.waiting().to_string()),
        )
        .route("/clients/{limit}/{client}", get(peek).delete(reset))
        .route("/clients/{limit}/{client}/grant/{units}", post(grant))
        .route("/blocks/{limit}/{client}", delete(unblock))
        .route("/blocks/{limit}/{client}/{seconds}", put(block))
        .route("/per_minute/{units}", put(replace))
        .layer(from_fn(refuse_browsers))
        .with_state(limits)
}

/// Refuses requests that the page of another site sends from the browser of an operator.
///
/// Requests across sites have an `Origin`. After DNS rebinding, requests have the attacker's name as `Host`.
async fn refuse_browsers(request: Request, next: Next) -> Result<Response, StatusCode> {
    let headers = request.headers();
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let is_address = host.parse::<SocketAddr>().is_ok() || host.starts_with("localhost:");
    if headers.contains_key(ORIGIN) || !is_address {
        return Err(StatusCode::FORBIDDEN);
    }
    Ok(next.run(request).await)
}

/// Returns the remaining units, and whether the limit would admit a request now.
async fn peek(
    State(limits): State<Limits>,
    Path((limit, client)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let status = limits.peek(&limit, &client).await?;
    let blocked = limits
        .blocked_for(&limit, &client)?
        .map(|left| left.as_secs_f64().ceil());
    Ok(Json(json!({ "status": status_of(&status), "blocked_secs": blocked })).into_response())
}

async fn reset(
    State(limits): State<Limits>,
    Path((limit, client)): Path<(String, String)>,
) -> Result<Response, Failed> {
    Ok(Json(status_of(&limits.reset(&limit, &client).await?)).into_response())
}

async fn grant(
    State(limits): State<Limits>,
    Path((limit, client, units)): Path<(String, String, u64)>,
) -> Result<Response, Failed> {
    Ok(Json(status_of(&limits.grant(&limit, &client, units).await?)).into_response())
}

async fn block(
    State(limits): State<Limits>,
    Path((limit, client, seconds)): Path<(String, String, u64)>,
) -> Result<StatusCode, Failed> {
    limits.block(&limit, &client, Duration::from_secs(seconds))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn unblock(
    State(limits): State<Limits>,
    Path((limit, client)): Path<(String, String)>,
) -> Result<StatusCode, Failed> {
    Ok(if limits.unblock(&limit, &client)? {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    })
}

/// Returns the most refused clients of the last minute. Shows only a prefix of API keys, because API keys are secrets.
async fn refused(State(limits): State<Limits>) -> Json<Value> {
    let shown = |text: String| {
        if text.parse::<std::net::IpAddr>().is_ok() {
            text
        } else {
            text.chars().take(4).collect()
        }
    };
    json_of(
        limits
            .top_refused(TopWindow::Minute)
            .into_iter()
            .map(|client| {
                json!({
                    "limit": client.limit.as_str(),
                    "client": client.text().map(shown),
                    "refusals": client.at_least(),
                    "retry_after_secs": client.retry_after().as_secs_f64().ceil(),
                })
            }),
    )
}

/// Replaces the policy. Running requests keep the old policy, and the counters stay.
async fn replace(
    State(limits): State<Limits>,
    Path(per_minute): Path<u64>,
) -> Result<StatusCode, (StatusCode, String)> {
    let policy = policy(per_minute).ok_or((
        StatusCode::BAD_REQUEST,
        "no such quota: give at least 1\n".to_owned(),
    ))?;
    limits.replace_policy(policy);
    Ok(StatusCode::NO_CONTENT)
}

fn json_of(values: impl Iterator<Item = Value>) -> Json<Value> {
    Json(values.collect())
}

fn status_of(status: &LimitStatus) -> Value {
    json!({
        "limit": status.limit,
        "remaining": status.remaining(),
        "full_in_secs": status.reset_after().as_secs_f64().ceil(),
        "admits": !status.outcome.is_refusal(),
    })
}

/// The error of an admin request.
struct Failed(HandleError<BoxStoreError>);

impl From<HandleError<BoxStoreError>> for Failed {
    fn from(error: HandleError<BoxStoreError>) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = match self.0 {
            HandleError::UnknownLimit { .. } => StatusCode::NOT_FOUND,
            HandleError::UnreadableKey(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{}\n", self.0)).into_response()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = match std::env::var("REDIS_URL") {
        Ok(url) => BoxStore::new(
            RedisStore::options()
                // Name your service. Two services with one prefix share their counters.
                .prefix("operations")
                // Start even if Redis is unavailable.
                .connect_lazily()
                .connect(&url)
                .await?,
        ),
        Err(_) => BoxStore::new(MemoryStore::new()),
    };
    let layer = RateLimitLayer::new(store.clone(), policy(3).ok_or("no such quota")?);
    let limits = layer.handle();

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/slow", get(|| async { "hello at last\n" }))
        .layer(layer);

    let (service, address) = listen("PORT", "3000").await?;
    let (admins, admin_address) = listen("ADMIN_PORT", "3001").await?;
    println!("listening on http://{address}");
    println!("admin on http://{admin_address}");
    println!("each API key, else each address: 3 a minute");
    println!(
        "try:  for i in $(seq 4); do curl -i -H 'x-api-key: ann-12345' http://{address}/; done"
    );
    println!("      curl http://{admin_address}/refused");
    println!(
        "      curl http://{admin_address}/clients/minute/ann-12345                 # -X DELETE resets"
    );
    println!("      curl -X POST http://{admin_address}/clients/minute/ann-12345/grant/2");
    println!(
        "      curl -i -X PUT http://{admin_address}/blocks/minute/ann-12345/600    # -X DELETE, without the seconds, ends it"
    );
    println!("      curl -i -X PUT http://{admin_address}/per_minute/100");
    println!(
        "      for i in $(seq 3); do curl -i http://{address}/slow & done; kill {}",
        std::process::id()
    );

    tokio::spawn(serve_admin(admins, admin(limits.clone())));
    axum::serve(
        service,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .with_graceful_shutdown(async move {
        terminated().await;
        // Refuse the queued requests, because the shutdown would wait for them.
        limits.close_queue();
    })
    .await?;
    // Every request has ended. Wait until the store has sent the refunds.
    let is_done = store.close(STORE_DEADLINE).await;
    println!(
        "stopped, {}",
        if is_done {
            "nothing is lost"
        } else {
            "the store was too slow: some refunds are lost"
        }
    );
    Ok(())
}

async fn listen(
    variable: &str,
    default: &str,
) -> Result<(TcpListener, SocketAddr), Box<dyn Error>> {
    let address = format!(
        "127.0.0.1:{}",
        std::env::var(variable).unwrap_or_else(|_| default.into())
    );
    let listener = TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set {variable} to another port"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Waits for ctrl-c, or for SIGTERM, which Kubernetes and systemd send to stop a service.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut sigterm) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = sigterm.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
