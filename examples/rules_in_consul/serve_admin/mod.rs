//! Serves an admin API with bounds, which `axum::serve` does not have.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The most connections of the admin API. More wait, so slow clients leave file descriptors to the service.
const CONNECTIONS: usize = 64;

/// The longest time for the head of a request, and between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn serve_admin(mut listener: TcpListener, admin: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let (stream, address) = Listener::accept(&mut listener).await;
        let admin = admin.clone().layer(Extension(ConnectInfo(address)));
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(admin));
            let _ = connection.await;
            drop(place);
        });
    }
}
