//! Charges a GraphQL request by the complexity of the query. The query is in the body, and limits read only the head of
//! a request. A middleware outside the layer measures the query, and passes the cost in the extensions of the request.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example graphql_cost
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::io;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::{Extension, Router, routing::post};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

/// The cost of a query in resolved fields, or `None` if the middleware cannot measure the query.
#[derive(Clone, Copy)]
struct Complexity(Option<u64>);

/// In bytes. Longer queries get 413.
const LONGEST_QUERY: usize = 16 * 1024;

async fn measure(request: Request, next: Next) -> Result<Response, StatusCode> {
    let (mut head, body) = request.into_parts();
    let query = to_bytes(body, LONGEST_QUERY)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    head.extensions
        .insert(Complexity(complexity(&String::from_utf8_lossy(&query))));
    Ok(next.run(Request::from_parts(head, Body::from(query))).await)
}

/// Replace with the complexity that your GraphQL library computes. A field costs a unit, multiplied by the `first`
/// argument of every enclosing list.
///
/// Returns `None` for variables, strings, fragments and other arguments. Do not guess, because a hostile client would
/// make your guess wrong.
fn complexity(query: &str) -> Option<u64> {
    let is_punctuation = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let pieces = query.split_inclusive(is_punctuation).flat_map(|piece| {
        let word = piece.trim_end_matches(is_punctuation);
        [word, piece[word.len()..].trim()]
    });
    let mut tokens = pieces.filter(|token| !token.is_empty());
    let (mut units, mut times, mut first, mut outer) = (0_u64, 1_u64, 1_u64, Vec::new());
    while let Some(token) = tokens.next() {
        match token {
            "{" => {
                outer.push(times);
                times = times.saturating_mul(first);
                first = 1;
            }
            "}" => times = outer.pop()?,
            "(" => {
                let argument = [tokens.next()?, tokens.next()?];
                first = tokens.next()?.parse::<u64>().ok()?.max(1);
                if argument != ["first", ":"] || tokens.next()? != ")" {
                    return None;
                }
            }
            word if !word.contains(is_punctuation) => {
                if !outer.is_empty() {
                    units = units.saturating_add(times);
                }
                first = 1;
            }
            _ => return None,
        }
    }
    outer.is_empty().then_some(units)
}

/// Replace with your schema.
async fn resolve(
    Extension(Complexity(units)): Extension<Complexity>,
) -> Result<String, StatusCode> {
    let units = units.ok_or(StatusCode::BAD_REQUEST)?;
    Ok(format!("{{\"data\":{{\"fields\":{units}}}}}\n"))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new().limit(
        Limit::new("fields", Quota::per_hour(1_000))
            .by(key::client_ip())
            // Every request costs at least one unit, even if the handler refuses the query. A query that costs more
            // than 1000 can never pass, so the refusal has no `Retry-After`.
            .cost_with(|head| {
                head.extensions()
                    .get()
                    .and_then(|Complexity(units)| *units)
                    .unwrap_or(1)
                    .max(1)
            }),
    );

    let app = Router::new()
        .route("/", post(resolve))
        .layer(RateLimitLayer::new(MemoryStore::new(), policy))
        // The last layer runs first, so the cost is known when the limits run.
        .layer(from_fn(measure));

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each client: 1000 fields an hour");
    println!(
        "try:  curl -i -d '{{ hero {{ name }} }}' http://{address}/                      # costs 2"
    );
    println!(
        "      curl -i -d '{{ users(first: 20) {{ name posts(first: 20) {{ title }} }} }}' http://{address}/"
    );
    println!(
        "      curl -i -d '{{ users(first: 1000) {{ name email }} }}' http://{address}/    # never passes"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
