//! A port, which accepts connections.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::places::Places;
use crate::metrics;
use crate::serve::wait::sleep;
use crate::tls::Certificates;

/// The most calls of an HTTP/2 connection at the same time.
const STREAMS: u32 = 1_024;
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// The time between two questions whether an HTTP/2 client is still there, and the time for the answer.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// The wait after an error, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// What a port serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Protocol {
    Grpc,
    Http,
    /// HTTP/1 with event streams.
    Admin,
}

/// The bounds of a port and its connections.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct Bounds {
    pub(in crate::serve) protocol: Protocol,
    pub(in crate::serve) connections: usize,
    /// The time until the first request is complete, with the handshake of TLS.
    pub(in crate::serve) first_request: Duration,
    /// The time without a request after which a connection ends. The time may be up to twice as long.
    pub(in crate::serve) idle: Duration,
    /// The longest time until the head of a response.
    pub(in crate::serve) request: Duration,
    pub(in crate::serve) age: Duration,
    /// The time for running requests of a connection that is too old.
    pub(in crate::serve) age_grace: Duration,
}

/// A port with what it serves.
#[derive(Debug)]
pub(in crate::serve) struct Port {
    pub(super) name: &'static str,
    pub(super) bounds: Bounds,
    pub(super) certificates: Option<Arc<Certificates>>,
    pub(super) router: Router,
    pub(super) http: Builder<TokioExecutor>,
}

impl Bounds {
    pub(in crate::serve) const fn new(protocol: Protocol, connections: usize) -> Self {
        Self {
            protocol,
            connections,
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            request: Duration::from_secs(10),
            age: Duration::MAX,
            age_grace: Duration::ZERO,
        }
    }
}

impl Protocol {
    /// Returns the names of the protocols for ALPN.
    pub(in crate::serve) const fn alpn(self) -> &'static [&'static str] {
        match self {
            Self::Grpc => &["h2"],
            Self::Http => &["h2", "http/1.1"],
            Self::Admin => &["http/1.1"],
        }
    }
}

impl Port {
    pub(in crate::serve) fn new(
        name: &'static str,
        bounds: Bounds,
        certificates: Option<Arc<Certificates>>,
        router: Router,
    ) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            // The bounds of the connection replace it, because it ends idle connections too.
            .header_read_timeout(None)
            .max_buf_size(LONGEST_HEAD);
        http.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .max_concurrent_streams(STREAMS);
        let http = match bounds.protocol {
            Protocol::Grpc => http.http2_only(),
            Protocol::Http => http,
            Protocol::Admin => http.http1_only(),
        };
        Self {
            name,
            bounds,
            certificates,
            router: router.with_state(()),
            http,
        }
    }

    /// Accepts connections until the server ends. Returns after the last connection has ended.
    pub(in crate::serve) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        mut drain: watch::Receiver<bool>,
    ) {
        let places = Places::new(self.bounds.connections);
        // Ends when the last connection has dropped its receiver.
        let (connections, connected) = watch::channel(());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = drain.wait_for(|is_ending| *is_ending) => break,
            };
            let (stream, peer): (_, SocketAddr) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_of_connection(&error) => continue,
                Err(error) => {
                    tracing::error!(port = self.name, "cannot accept connections: {error}");
                    places.evict();
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some(place) = places.take() else {
                metrics::closed(self.name, "full");
                continue;
            };
            metrics::connections(self.name, places.taken());
            let (port, drain, connected) = (Arc::clone(&self), drain.clone(), connected.clone());
            let places = Arc::clone(&places);
            tokio::spawn(async move {
                let name = port.name;
                port.connect(stream, peer, place, drain).await;
                metrics::connections(name, places.taken());
                drop(connected);
            });
        }
        drop((listener, connected));
        connections.closed().await;
    }
}

/// Returns whether the error concerns a single connection, which is gone already.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
