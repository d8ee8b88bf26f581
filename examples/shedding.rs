//! Shows what shedding does for a service whose dependency becomes slow.
//!
//! Two equal services get twice as many requests as they can answer. One service sheds load. After ten seconds, the
//! dependency takes five times as long, and after twenty seconds it recovers. A line for each second shows how many
//! requests were answered within 200 ms.
//!
//! Run the example for half a minute:
//!
//!     cargo run --release -p tower-quota-examples --example shedding
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = "0.1"
//!     tower-quota-shed = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "rt-multi-thread", "sync", "time"] }
//!     tower = { version = "0.5", features = ["util"] }

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use axum::{Router, response::Response};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tower::{Service, ServiceExt};
use tower_quota_shed::ShedLayer;

/// The connections to the dependency. With 10 ms each, the service answers 1,600 requests a second.
const CONNECTIONS: usize = 16;
const WORK: Duration = Duration::from_millis(10);

/// The requests of every fifth millisecond, twice the capacity.
const REQUESTS: u32 = 16;

/// Clients give up after this time, so later answers are wasted.
const USEFUL: Duration = Duration::from_millis(200);

/// How many times as long as usual the dependency takes.
static SLOWNESS: AtomicU32 = AtomicU32::new(1);

fn service() -> Router {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let handler = async move || {
        let connection = connections.acquire().await;
        sleep(WORK * SLOWNESS.load(Ordering::Relaxed)).await;
        drop(connection);
        "done"
    };
    Router::new().route("/", get(handler))
}

/// What happened to the requests of a second.
#[derive(Default)]
struct Second {
    refused: usize,
    times: Vec<Duration>,
}

impl Second {
    /// Returns the answers in time, and the 99th percentile of all answers.
    fn summary(mut self) -> (usize, Duration, usize) {
        self.times.sort_unstable();
        let useful = self.times.partition_point(|time| *time <= USEFUL);
        let position = self.times.len() * 99 / 100;
        let slow = self.times.get(position).copied().unwrap_or_default();
        (useful, slow, self.refused)
    }
}

fn lock(second: &Mutex<Second>) -> MutexGuard<'_, Second> {
    second.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a request without waiting for the others, as many independent clients do.
fn send<S>(service: &S, second: &Arc<Mutex<Second>>)
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let (service, second) = (service.clone(), Arc::clone(second));
    tokio::spawn(async move {
        let begin = Instant::now();
        let Ok(response) = service.oneshot(Request::new(Body::empty())).await;
        let mut second = lock(&second);
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            second.refused += 1;
        } else {
            second.times.push(begin.elapsed());
        }
    });
}

#[tokio::main]
async fn main() {
    let shed = ShedLayer::new();
    let handle = shed.handle();
    let services = [service().layer(shed), service()];
    let seconds = [(); 2].map(|()| Arc::new(Mutex::new(Second::default())));

    println!("            with shedding                         without");
    println!("second work in time refused      p99   limit        in time       p99");
    let mut ticks = interval(Duration::from_millis(5));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for second in 1..=30 {
        let slowness = if (11..=20).contains(&second) { 5 } else { 1 };
        SLOWNESS.store(slowness, Ordering::Relaxed);
        for _ in 0..200 {
            ticks.tick().await;
            for (service, second) in services.iter().zip(&seconds) {
                for _ in 0..REQUESTS {
                    send(service, second);
                }
            }
        }
        let [with, without] = seconds.each_ref().map(|second| {
            let mut second = lock(second);
            std::mem::take(&mut *second).summary()
        });
        let limit = handle.stats().limit;
        let [slow, slow_without] = [with.1, without.1].map(|time| time.as_millis());
        println!(
            "{second:6} {slowness:>3}x {:7} {:7} {slow:5} ms {limit:7}        {:7} {slow_without:6} ms",
            with.0, with.2, without.0,
        );
    }
}
