//! A connection from its first byte to its end.

use core::net::SocketAddr;
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::places::Place;
use super::port::Port;
use super::requests::Served;
use crate::metrics;
use crate::serve::wait::sleep;

/// The time in which an idle connection may say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

impl Port {
    /// Serves a connection, after the handshake of TLS.
    pub(super) async fn connect(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
        mut drain: watch::Receiver<bool>,
    ) {
        // Answers are small, and clients wait for them.
        let _ = stream.set_nodelay(true);
        let Some(certificates) = &self.certificates else {
            return self.serve_requests(stream, peer, &place, drain).await;
        };
        let handshake = certificates.acceptor().accept(stream);
        let handshake = timeout(self.bounds.first_request, handshake);
        let stream = tokio::select! {
            stream = handshake => stream,
            () = place.requests.evicted() => return metrics::closed(self.name(), "evicted"),
            _ = drain.wait_for(|is_ending| *is_ending) => return metrics::closed(self.name(), "drained"),
        };
        match stream {
            Ok(Ok(stream)) => self.serve_requests(stream, peer, &place, drain).await,
            Ok(Err(error)) => {
                tracing::debug!(port = self.name(), %peer, "no TLS: {error}");
                metrics::closed(self.name(), "handshake");
            }
            Err(_) => metrics::closed(self.name(), "idle"),
        }
    }

    async fn serve_requests<I>(
        &self,
        io: I,
        peer: SocketAddr,
        place: &Place,
        mut drain: watch::Receiver<bool>,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let bounds = self.bounds;
        let requests = &place.requests;
        let served = Served {
            router: self.router.clone(),
            protocol: self.protocol,
            longest: bounds.request,
            peer,
            requests: Arc::clone(requests),
        };
        let connection = self.http.serve_connection(TokioIo::new(io), served);
        let mut connection = pin!(connection);
        let oldest = place.spread(bounds.age);
        let (mut age, mut begun) = (Duration::ZERO, 0);
        let mut next = bounds.first_request.min(oldest);
        let mut tick = pin!(sleep(next));
        let (reason, grace) = loop {
            tokio::select! {
                biased;
                _ = &mut connection => return,
                _ = drain.wait_for(|is_ending| *is_ending) => break ("drained", None),
                () = requests.evicted() => break ("evicted", Some(Duration::ZERO)),
                () = &mut tick => {}
            }
            age += next;
            if age >= oldest {
                break ("age", Some(bounds.age_grace));
            }
            if begun == requests.begun() && !requests.are_running() {
                break ("idle", Some(GOODBYE));
            }
            begun = requests.begun();
            next = bounds.idle.min(oldest.saturating_sub(age));
            tick.set(sleep(next));
        };
        metrics::closed(self.name(), reason);
        connection.as_mut().graceful_shutdown();
        match grace {
            // The server bounds the time of its end.
            None => drop(connection.await),
            Some(grace) => drop(timeout(grace, connection).await),
        }
    }
}
