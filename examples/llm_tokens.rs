//! A proxy of a language model: two streams at a time for each tenant, and tokens a day. The proxy reserves an estimate
//! before the model runs, and settles the tokens of the answer when the stream ends or the client hangs up. An operator
//! grants tokens back.
//!
//!     cargo run --release -p tower-quota-examples --example llm_tokens
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tokio-stream = "0.1"

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::post};
use tokio_stream::StreamExt;
use tower_quota::settle::{self, Reservation};
use tower_quota::{
    Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitHandle, RateLimitLayer, cost, key,
};

/// The tokens that an answer is estimated to take until it is known.
const ESTIMATED_ANSWER: u64 = 500;

/// A rough ratio for English text.
const BYTES_PER_TOKEN: usize = 4;

/// The longest prompt that is accepted, in tokens.
const LONGEST_PROMPT: usize = 2_000;

/// Stands for a model: returns the prompt in capitals, word by word.
async fn complete(reservation: Reservation, prompt: String) -> Body {
    let words: Vec<String> = prompt.split_whitespace().map(str::to_uppercase).collect();
    // The prompt counts, however little of the answer is sent.
    let mut used = words.len() as u64;
    reservation.settle("tokens", used);
    // The stream owns the reservation. It is settled once, by the last value set, when the stream is dropped.
    Body::from_stream(tokio_stream::iter(words).map(move |word| {
        used += 1;
        reservation.settle("tokens", used);
        Ok::<_, Infallible>(format!("{word}\n"))
    }))
}

/// Gives tokens back to a tenant, up to the quota of the day.
async fn grant(
    State(limits): State<RateLimitHandle<MemoryStore>>,
    Path((tenant, tokens)): Path<(String, u64)>,
) -> Result<String, StatusCode> {
    let granted = limits.grant("tokens", &tenant, tokens).await;
    let status = granted.map_err(|_| StatusCode::NOT_FOUND)?;
    Ok(format!("{} of {} left\n", status.remaining(), status.limit))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    // A client that does not send the length pays for the longest prompt that is accepted, until the handler knows better.
    let prompt = cost::body_size(BYTES_PER_TOKEN as u64, LONGEST_PROMPT as u64);

    let policy = Policy::new()
        .limit(
            Limit::new("tokens", Quota::per_day(20_000))
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Refuse)
                // Taken up front, so that requests at the same time cannot spend the same tokens ...
                .cost_with(move |head| prompt(head).saturating_add(ESTIMATED_ANSWER))
                // ... and settled by the handler. If the handler failed and set nothing, all units are refunded.
                // More than the estimate is charged too, into debt if needed. A client in debt waits until it is paid.
                .settle(settle::only_successes()),
        )
        // A unit is held until the stream ends, and a killed process loses its units after a minute.
        .limit(Limit::new("streams", Quota::concurrent(2)).by(key::header("x-api-key")))
        .limit(Limit::new("requests", Quota::per_minute(600)).by(key::header("x-api-key")))
        // Made-up keys get a fresh counter each: their address is counted too.
        .limit(Limit::new("address", Quota::per_minute(600)).by(key::client_ip()));

    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    // An address of its own, which only operators reach.
    let operators = Router::new()
        .route("/grant/{tenant}/{tokens}", post(grant))
        .with_state(layer.handle());
    let app = Router::new()
        .route("/", post(complete))
        // The promise of the estimate: no prompt is longer, also where the client does not send the length.
        .layer(DefaultBodyLimit::max(LONGEST_PROMPT * BYTES_PER_TOKEN))
        .layer(layer);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each API key: two streams at a time, 20000 tokens a day in prompts and answers");
    println!("try:  curl -i -H 'x-api-key: ann' -d 'to be or not to be' http://{address}/");
    println!("      # again: what is left is 12 tokens less, though some 500 were reserved");
    println!(
        "      curl -i -H 'x-api-key: ann' -d \"$(seq 1500)\" http://{address}/   # a few of them: 429"
    );

    let for_operators = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = for_operators.local_addr()?;
    println!("operators: http://{address}");
    println!("      curl -X POST http://{address}/grant/ann/1000");
    tokio::spawn(async move { axum::serve(for_operators, operators).await });

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
