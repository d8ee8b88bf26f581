//! A connection from its first byte to its end.

use core::net::SocketAddr;
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::port::Port;
use super::requests::{Begun, service};
use crate::metrics;
use crate::serve::wait::sleep;

/// The time in which an idle connection may say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

impl Port {
    /// Serves a connection up to an age, after the handshake of TLS.
    pub(super) async fn connect(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        oldest: Duration,
        drain: watch::Receiver<bool>,
    ) {
        // Answers are small, and clients wait for them.
        let _ = stream.set_nodelay(true);
        let Some(certificates) = &self.certificates else {
            return serve_requests(self, stream, peer, oldest, drain).await;
        };
        let name = self.protocol.name();
        let handshake = certificates.acceptor().accept(stream);
        match timeout(self.bounds.first_request, handshake).await {
            Ok(Ok(stream)) => serve_requests(self, stream, peer, oldest, drain).await,
            Ok(Err(error)) => {
                tracing::debug!(port = name, %peer, "no TLS: {error}");
                metrics::closed(name, "handshake");
            }
            Err(_) => metrics::closed(name, "idle"),
        }
    }
}

async fn serve_requests(
    port: Arc<Port>,
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    oldest: Duration,
    mut drain: watch::Receiver<bool>,
) {
    let bounds = port.bounds;
    let requests = Begun::default();
    let service = service(Arc::clone(&port), peer, Arc::clone(&requests));
    let mut connection = pin!(port.http.serve_connection(TokioIo::new(io), service));
    let (mut age, mut begun) = (Duration::ZERO, 0);
    let mut next = bounds.first_request.min(oldest);
    let mut tick = pin!(sleep(next));
    let (reason, grace) = loop {
        tokio::select! {
            biased;
            _ = &mut connection => return,
            _ = drain.wait_for(|is_ending| *is_ending) => break ("drained", None),
            () = &mut tick => {}
        }
        age += next;
        if age >= oldest {
            break ("age", Some(bounds.age_grace));
        }
        let earlier = core::mem::replace(&mut begun, requests.load(Ordering::Relaxed));
        // This function and the service have a clone each.
        if begun == earlier && Arc::strong_count(&requests) == 2 {
            break ("idle", Some(GOODBYE));
        }
        next = bounds.idle.min(oldest.saturating_sub(age));
        tick.set(sleep(next));
    };
    metrics::closed(port.protocol.name(), reason);
    connection.as_mut().graceful_shutdown();
    match grace {
        // The server bounds the time of its end.
        None => drop(connection.await),
        Some(grace) => drop(timeout(grace, connection).await),
    }
}
