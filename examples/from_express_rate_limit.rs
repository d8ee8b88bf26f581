//! Ports an API from express-rate-limit to tower-quota. You see the old options in the comment above the new lines.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example from_express_rate_limit
//!
//! Read `docs/guide/from_express_rate_limit.md` for a table of all options, and for the differences to watch.
//!
//! Set `REDIS_URL` to keep the counters in Redis instead of in memory. The service listens on 127.0.0.1:3000. Set
//! `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "redis"] }
//!     axum = "0.8"
//!     serde_json = "1"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::get, routing::post};
use serde_json::{Value, json};
use tower_quota::{
    BoxStore, HeaderStyle, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitHandle,
    RateLimitLayer, RedisStore, key, settle, when,
};

/// The user of a session.
#[derive(Clone)]
struct User(String);

/// The name in the body of a login, in lower case.
#[derive(Clone)]
struct LoginName(String);

/// Replace with your session middleware, which sets `req.user` in Express. Run the middleware before the limits.
async fn authenticate(mut request: Request, next: Next) -> Response {
    // Accept only known sessions. Otherwise a client could send a new session with every request.
    let session = request
        .headers()
        .get("x-session")
        .map(|value| value.as_bytes());
    let user = match session {
        Some(b"session-of-ann") => Some("ann"),
        Some(b"session-of-bob") => Some("bob"),
        _ => None,
    };
    if let Some(user) = user {
        request.extensions_mut().insert(User(user.to_owned()));
    }
    next.run(request).await
}

/// Reads the name from the body, as `express.json()` does, because limits read only the head of a request.
async fn read_login_name(request: Request, next: Next) -> Result<Response, StatusCode> {
    let (mut head, body) = request.into_parts();
    let body = to_bytes(body, 4_096)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    let login: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let name = login["username"]
        .as_str()
        .filter(|name| !name.is_empty())
        .ok_or(StatusCode::BAD_REQUEST)?;
    head.extensions.insert(LoginName(name.to_lowercase()));
    Ok(next.run(Request::from_parts(head, Body::from(body))).await)
}

/// Replace with a check of the password hash. The example accepts `ann` with the password `secret`.
async fn login(
    State(limits): State<RateLimitHandle<BoxStore>>,
    head: Parts,
    Json(login): Json<Value>,
) -> Response {
    let name = head
        .extensions
        .get::<LoginName>()
        .map(|LoginName(name)| name.as_str());
    let ("ann", Some("secret")) = (name.unwrap_or_default(), login["password"].as_str()) else {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({ "error": "wrong name or password" })),
        )
            .into_response();
    };
    // limiter.resetKey(req.ip + req.body.username)
    // Forget earlier mistakes of a user who knows the password.
    if let Err(error) = limits.reset("login", &head).await {
        eprintln!("the counter of a login stays: {error}");
    }
    Json(json!({ "session": "session-of-ann" })).into_response()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let api = Policy::new()
        // skip: (req) => req.path === '/health'
        .skip(when::path("/health"))
        // rateLimit({ windowMs: 60_000, limit: 5, keyGenerator: (req) => req.user?.id ?? req.ip })
        .limit(
            Limit::new(
                "api",
                Quota::per_minute(5).fixed_window().from_first_request(),
            )
            .by(
                key::extension("user", |User(name): &User| Some(name.clone())).or(key::client_ip()),
            ),
        );
    // rateLimit({ windowMs: 15 * 60_000, limit: 3, skipSuccessfulRequests: true,
    //     keyGenerator: (req) => req.ip + req.body.username })
    let logins = Policy::new()
        .limit(
            Limit::new(
                "login",
                Quota::new(3, Duration::from_secs(900)).sliding_log(),
            )
            .by(key::all((
                key::client_ip(),
                key::extension("login", |LoginName(name): &LoginName| Some(name.clone())),
            )))
            .settle(settle::only_failures()),
        )
        // Stops an address that tries one password on many names, which the limit above does not notice.
        .limit(
            Limit::new("login-address", Quota::per_hour(20).sliding_log())
                .by(key::client_ip())
                .settle(settle::only_failures()),
        )
        // passOnStoreError: false
        .on_store_failure(OnStoreFailure::Refuse);

    // store: new RedisStore({ prefix: 'rl:', ... })
    // Two services with one prefix share their counters. The counters of express-rate-limit are not read.
    let store = match std::env::var("REDIS_URL") {
        Ok(url) => BoxStore::new(
            RedisStore::options()
                .prefix("rl:")
                .connect_lazily()
                .connect(&url)
                .await?,
        ),
        Err(_) => BoxStore::new(MemoryStore::new()),
    };
    let limiter = |policy: Policy| {
        RateLimitLayer::new(store.clone(), policy)
            // standardHeaders: 'draft-8', legacyHeaders: false
            .headers([HeaderStyle::Draft11])
            // message: { error: 'Too many requests, please try again later.' }
            .on_refused(|refused| {
                let message = json!({ "error": "Too many requests, please try again later." });
                (refused.status(), Json(message))
            })
            .on_store_error(|error| eprintln!("rate limits cannot be checked: {error}"))
    };
    let logins = limiter(logins);
    let handle = logins.handle();

    let app = Router::new()
        .route("/", get(|| async { Json(json!({ "hello": "world" })) }))
        .route("/health", get(|| async { "well\n" }))
        // The last layer runs first, so a request passes `authenticate`, then the limits, then the handler.
        .layer(limiter(api))
        .layer(from_fn(authenticate))
        .route(
            "/login",
            post(login).layer(logins).layer(from_fn(read_login_name)),
        )
        .with_state(handle);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each user, else each address: 5 a minute; 3 wrong passwords in 15 minutes");
    println!(
        "try:  for i in $(seq 6); do curl -i http://{address}/ -H 'x-session: session-of-ann'; done"
    );
    println!(
        "      for i in $(seq 4); do curl -i http://{address}/login -H 'content-type: application/json' \\"
    );
    println!("        -d '{{\"username\":\"ann\",\"password\":\"guess\"}}'; done");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await?;
    Ok(())
}
