//! Charges a repeated write once. Clients send an idempotency key with each order. If a client did not get the answer and
//! sends the order again, the service answers with the stored answer, and refunds the unit.
//!
//! Requests with the same key at the same time wait for the first one, so the service writes each order once.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example idempotent
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "sync", "time"] }

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use tokio::sync::OnceCell;
use tower_quota::settle::{self, Reservation};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, key};

/// The most orders to remember. After that, the service forgets the oldest answer.
const MOST_ORDERS: usize = 1_000;

/// In bytes.
const LONGEST_KEY: usize = 64;

/// In bytes.
const LONGEST_ORDER: usize = 1_000;

/// The API key and the idempotency key. Without the API key, a client could read the answers of other clients.
type OrderKey = (String, String);

struct Order {
    text: String,
    answer: OnceCell<String>,
}

/// Replace with a table in the database of your orders, which forgets keys after a day.
#[derive(Default)]
struct Orders {
    by_key: HashMap<OrderKey, Arc<Order>>,
    /// The keys, from the oldest to the latest.
    keys: VecDeque<OrderKey>,
}

impl Orders {
    /// Returns the order with this key, or remembers a new order. Returns `None` if there is no place.
    fn find_or_insert(&mut self, key: OrderKey, text: String) -> Option<Arc<Order>> {
        if let Some(known) = self.by_key.get(&key) {
            return Some(Arc::clone(known));
        }
        if self.by_key.len() == MOST_ORDERS {
            // Do not forget an order in progress, because a repeated request would write the order again.
            let is_written = |key: &OrderKey| self.by_key[key].answer.initialized();
            let oldest = self.keys.iter().position(is_written)?;
            let oldest = self.keys.remove(oldest)?;
            self.by_key.remove(&oldest);
        }
        let order = Arc::new(Order {
            text,
            answer: OnceCell::new(),
        });
        self.keys.push_back(key.clone());
        self.by_key.insert(key, Arc::clone(&order));
        Some(order)
    }
}

/// Replace with your write. If your write can fail, return the error from `OnceCell::get_or_try_init`, so that the next
/// request with the key tries again.
async fn write(order: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    format!("order {number}: {order}\n")
}

/// Returns the answer of an order, and whether an earlier request wrote the order.
async fn answer(order: Arc<Order>) -> (String, bool) {
    let mut is_replay = true;
    let written = order.answer.get_or_init(|| async {
        is_replay = false;
        write(&order.text).await
    });
    (written.await.clone(), is_replay)
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str, StatusCode> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value
        .filter(|text| !text.is_empty() && text.len() <= LONGEST_KEY)
        .ok_or(StatusCode::BAD_REQUEST)
}

async fn place(
    State(orders): State<Arc<Mutex<Orders>>>,
    reservation: Reservation,
    headers: HeaderMap,
    text: String,
) -> Result<Response, StatusCode> {
    let client = text_of(&headers, "x-api-key")?.to_owned();
    let key = text_of(&headers, "idempotency-key")?.to_owned();
    let order = orders
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .find_or_insert((client, key), text.clone())
        .ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    if order.text != text {
        // The client uses a key for two orders, which is a mistake.
        return Err(StatusCode::UNPROCESSABLE_ENTITY);
    }
    // In a task, the write continues if the client disconnects, and a repeated request gets the answer.
    let (answer, is_replay) = tokio::spawn(answer(order))
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    if is_replay {
        let _ = reservation.settle("orders", 0);
    }
    let headers = [("idempotent-replayed", is_replay.to_string())];
    Ok((StatusCode::CREATED, headers, answer).into_response())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        .limit(
            Limit::new("orders", Quota::per_hour(5))
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Unauthenticated)
                // A replay takes a unit until the handler refunds the unit. So a client without units gets 429 for a
                // replay too, and repeats the request later.
                .settle(settle::by_handler()),
        )
        // Replays cost the service work too, and a client could send a new API key with every request. So count every
        // request by address.
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()));

    let app = Router::new()
        .route("/orders", post(place))
        .layer(DefaultBodyLimit::max(LONGEST_ORDER))
        .layer(RateLimitLayer::new(MemoryStore::new(), policy))
        .with_state(Arc::<Mutex<Orders>>::default());

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!(
        "each API key: 5 orders an hour, replays do not count; each address: 60 requests a minute"
    );
    println!(
        "try:  curl -i -H 'x-api-key: ann' -H 'idempotency-key: 1' -d tea http://{address}/orders"
    );
    println!(
        "      # again: the same order, with `idempotent-replayed: true`; the refund follows the header fields"
    );
    println!(
        "      curl -i -H 'x-api-key: ann' -H 'idempotency-key: 1' -d coffee http://{address}/orders   # 422"
    );
    println!(
        "      for i in $(seq 2 6); do curl -s -o /dev/null -w '%{{http_code}}\\n' -H 'x-api-key: ann' \\"
    );
    println!(
        "        -H \"idempotency-key: $i\" -d tea http://{address}/orders; done   # three 201, then 429"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
