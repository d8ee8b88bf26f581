//! A server with 16 workers, behind each contender.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{BoxError, Router};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower_quota_shed::ShedLayer;

use crate::Outcome;
use crate::turns::rest;

pub(crate) const WORKERS: f64 = 16.0;
/// The mean work of a request in seconds.
pub(crate) const WORK: f64 = 0.020;
/// Answers after this time are useless, in seconds.
pub(crate) const USEFUL: f64 = 20.0 * WORK;
/// Requests a second that the workers can answer.
pub(crate) const CAPACITY: f64 = WORKERS / WORK;

/// Waits for one of the workers, and then for its work. Work needs no processor, so clients and server do not disturb each other.
pub(crate) struct Workers {
    free: Semaphore,
    /// The mean work in microseconds.
    work: AtomicU64,
}

impl Workers {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            free: Semaphore::new(WORKERS as usize),
            work: AtomicU64::new((WORK * 1e6) as u64),
        })
    }

    /// Multiplies the work from now on.
    pub(crate) fn slow_down(&self, times: f64) {
        let micros = (WORK * times * 1e6) as u64;
        self.work.store(micros, Ordering::Relaxed);
    }

    async fn answer(&self) {
        let _worker = self.free.acquire().await;
        let mean = self.work.load(Ordering::Relaxed) as f64 / 1e6;
        let work = -(1.0 - fastrand::f64()).ln() * mean;
        // Timers are late by half a millisecond on average.
        rest(Duration::from_secs_f64((work - 0.000_5).max(0.0))).await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Contender {
    TowerQuota,
    Nothing,
    Fixed(usize),
    #[cfg(feature = "adaptive")]
    Resilience,
    #[cfg(feature = "adaptive")]
    Acc,
}

pub(crate) const RIGHT: Contender = Contender::Fixed(24);
pub(crate) const WRONG: Contender = Contender::Fixed(200);

pub(crate) const ALL: &[(&str, Contender)] = &[
    ("tower-quota", Contender::TowerQuota),
    ("nothing", Contender::Nothing),
    ("ConcurrencyLimit, 24", RIGHT),
    ("ConcurrencyLimit, 200", WRONG),
    #[cfg(feature = "adaptive")]
    ("tower-resilience, Vegas", Contender::Resilience),
    #[cfg(feature = "adaptive")]
    ("tower-acc, Vegas", Contender::Acc),
];

/// A server that stops when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) workers: Arc<Workers>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn overloaded(_: BoxError) -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}

/// Refuses what this layer would let wait, as `ShedLayer` does.
macro_rules! shedding {
    ($app:expr, $layer:expr) => {
        $app.layer(
            ServiceBuilder::new()
                .layer(HandleErrorLayer::new(overloaded))
                .layer(LoadShedLayer::new())
                .layer($layer),
        )
    };
}

impl Contender {
    pub(crate) async fn start(self) -> Outcome<Server> {
        match self {
            Self::TowerQuota => Server::start(|app| app.layer(ShedLayer::new())).await,
            Self::Nothing => Server::start(|app| app).await,
            Self::Fixed(limit) => {
                Server::start(|app| shedding!(app, GlobalConcurrencyLimitLayer::new(limit))).await
            }
            #[cfg(feature = "adaptive")]
            Self::Resilience => {
                let vegas = tower_resilience_adaptive::Vegas::builder().build()?;
                let layer = tower_resilience_adaptive::AdaptiveLimiterLayer::new(vegas);
                Server::start(|app| shedding!(app, layer)).await
            }
            #[cfg(feature = "adaptive")]
            Self::Acc => {
                let layer = tower_acc::ConcurrencyLimitLayer::new(tower_acc::Vegas::default());
                Server::start(|app| shedding!(app, layer)).await
            }
        }
    }
}

impl Server {
    pub(crate) async fn start(behind: impl FnOnce(Router) -> Router) -> Outcome<Self> {
        let workers = Workers::new();
        let working = Arc::clone(&workers);
        let answer = move || {
            let workers = Arc::clone(&working);
            async move { workers.answer().await }
        };
        // Without a state, axum would build the layers anew for each request, and the peers keep their limit in the service.
        let app: Router = behind(Router::new().route("/", get(answer))).with_state(());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            workers,
            task,
        })
    }
}
