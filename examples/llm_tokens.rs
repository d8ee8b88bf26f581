//! Limits a proxy of a language model by tokens per day and by concurrent streams, for every tenant.
//!
//! The proxy reserves an estimate before the model runs. When the stream ends or the client disconnects, the proxy
//! settles the tokens that were used. Operators can grant tokens to a tenant.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example llm_tokens
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
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

/// The estimated tokens of an answer.
const ESTIMATED_ANSWER: u64 = 500;

/// A rough average for English text.
const BYTES_PER_TOKEN: usize = 4;

/// The longest accepted prompt, in tokens.
const LONGEST_PROMPT: usize = 2_000;

/// Replace with your model. The example returns the prompt in capitals, word by word.
async fn complete(reservation: Reservation, prompt: String) -> Body {
    let words: Vec<String> = prompt.split_whitespace().map(str::to_uppercase).collect();
    // Count the prompt even if the client disconnects before the answer.
    let mut used = words.len() as u64;
    let _ = reservation.settle("tokens", used);
    // The stream owns the reservation. When the stream is dropped, the layer settles the last value that you set.
    Body::from_stream(tokio_stream::iter(words).map(move |word| {
        used += 1;
        let _ = reservation.settle("tokens", used);
        Ok::<_, Infallible>(format!("{word}\n"))
    }))
}

/// Grants tokens to a tenant, up to the daily quota.
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
    // If the client does not send the length of the prompt, reserve the longest accepted prompt.
    let prompt = cost::body_size(BYTES_PER_TOKEN as u64, LONGEST_PROMPT as u64);

    let policy = Policy::new()
        .limit(
            Limit::new("tokens", Quota::per_day(20_000))
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Refuse)
                // Charge the estimate before the handler runs, so that concurrent requests cannot spend the same
                // tokens.
                .cost_with(move |head| prompt(head).saturating_add(ESTIMATED_ANSWER))
                // The handler settles the tokens that were used. If the handler fails without a value, the layer
                // refunds the estimate. Tokens beyond the estimate can lead to debt, and a client in debt waits for the
                // refill.
                .settle(settle::only_successes()),
        )
        // A request holds a unit until the stream ends. If the process is killed, the units expire after a minute.
        .limit(Limit::new("streams", Quota::concurrent(2)).by(key::header("x-api-key")))
        .limit(Limit::new("requests", Quota::per_minute(600)).by(key::header("x-api-key")))
        // A client could send a new key with every request, so limit the address too.
        .limit(Limit::new("address", Quota::per_minute(600)).by(key::client_ip()));

    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    // Serve operators on a separate address that clients cannot reach.
    let operators = Router::new()
        .route("/grant/{tenant}/{tokens}", post(grant))
        .with_state(layer.handle());
    let app = Router::new()
        .route("/", post(complete))
        // Refuse longer prompts, so that the estimate holds even if the client does not send the length.
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
    println!("      # again: 12 tokens fewer remain, although about 500 were reserved");
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
