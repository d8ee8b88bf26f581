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

use super::bounds::{Bounds, Protocol};
use super::places::Places;
use crate::metrics;
use crate::options::PortFlags;
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

/// A port with its bound address.
#[derive(Debug)]
pub(in crate::serve) struct BoundPort {
    pub(in crate::serve) address: SocketAddr,
    listener: TcpListener,
    port: Arc<Port>,
}

/// What a port serves.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) protocol: Protocol,
    pub(super) bounds: Bounds,
    pub(super) certificates: Option<Arc<Certificates>>,
    pub(super) router: Router,
    pub(super) http: Builder<TokioExecutor>,
}

impl BoundPort {
    pub(in crate::serve) async fn bind(
        protocol: Protocol,
        address: SocketAddr,
        flags: &PortFlags,
        certificates: Option<Arc<Certificates>>,
        router: Router,
    ) -> Result<Self, String> {
        let refused = |error| {
            let port = protocol.name();
            format!("--{port} {address}: {error}: choose another address or port")
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
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
            .max_concurrent_streams(STREAMS)
            // Gateways reset late calls. The default of 20 would end the connection of a busy server.
            .max_pending_accept_reset_streams(STREAMS as usize);
        let http = match protocol {
            Protocol::Grpc => http.http2_only(),
            Protocol::Http => http,
            Protocol::Admin | Protocol::Metrics => http.http1_only(),
        };
        let port = Arc::new(Port {
            protocol,
            bounds: Bounds::of(protocol, flags),
            certificates,
            router: router.with_state(()),
            http,
        });
        Ok(Self {
            address,
            listener,
            port,
        })
    }

    /// Accepts connections until the server ends. Returns after the last connection has ended.
    pub(in crate::serve) async fn serve(self, mut drain: watch::Receiver<bool>) {
        let Self { listener, port, .. } = self;
        let name = port.name();
        let places = Places::new(port.bounds.connections);
        // Ends when the last connection has dropped its receiver.
        let (connections, connected) = watch::channel(());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = drain.wait_for(|is_ending| *is_ending) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_of_connection(&error) => continue,
                Err(error) => {
                    tracing::error!(port = name, "cannot accept connections: {error}");
                    places.evict();
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some(place) = places.take() else {
                metrics::closed(name, "full");
                continue;
            };
            metrics::connections(name, places.taken());
            let (port, drain, connected) = (Arc::clone(&port), drain.clone(), connected.clone());
            let places = Arc::clone(&places);
            tokio::spawn(async move {
                port.connect(stream, peer, place, drain).await;
                metrics::connections(name, places.taken());
                drop(connected);
            });
        }
        drop((listener, connected));
        connections.closed().await;
    }
}

impl Port {
    pub(super) const fn name(&self) -> &'static str {
        self.protocol.name()
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
