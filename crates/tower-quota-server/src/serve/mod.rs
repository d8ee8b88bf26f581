//! A server that runs until a signal.
//!
//! 1. `load` opens limits, counters and certificates, and collects all errors.
//! 2. `doors` makes the router of each port.
//! 3. `connections` serves the routers, with bounds.
//! 4. `followers` read changed files, ask Redis, and report the `health`.
//!
//! After the signal, the server is not ready, waits for balancers to notice, ends its ports and the running requests, and
//! closes the counters.

mod connections;
mod descriptors;
mod doors;
mod error;
mod followers;
mod health;
mod load;
mod parts;
mod wait;

use core::future::Future;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic_health::server::HealthReporter;

use self::connections::{BoundPort, Protocol};
pub use self::error::StartError;
use self::health::Health;
use self::load::Loaded;
use self::parts::Parts;
use self::wait::sleep;
use crate::check::Reservations;
use crate::metrics;
use crate::options::{Options, PortFlags};

/// The longest time for the documents, and for leases and refunds, to be given back.
const CLOSE: Duration = Duration::from_secs(2);

/// A server with bound addresses.
#[derive(Debug)]
pub struct BoundServer {
    grpc: BoundPort,
    http: BoundPort,
    admin: BoundPort,
    metrics: Option<BoundPort>,
    parts: Parts,
    reservations: Option<Arc<Reservations>>,
    health: Health,
    reporter: HealthReporter,
    followers: JoinSet<()>,
    flags: PortFlags,
    summary: String,
}

impl BoundServer {
    /// Loads the limits, opens the counters and the certificates, and binds the addresses.
    ///
    /// # Errors
    /// Returns all flags and files that cannot be used.
    pub async fn bind(options: &Options) -> Result<Self, StartError> {
        // Layers need the recorder.
        metrics::install();
        let mut options = options.clone();
        descriptors::lower(&mut options.ports);
        let options = &options;
        let loaded = Loaded::load(options, false).await?;
        let parts = loaded.parts;
        let documents = parts.documents.as_ref();
        let health = Health::new(
            parts.store.place(),
            loaded.source.as_ref().map(|source| source.place.clone()),
            documents.map(|documents| documents.live.clone()),
            options.store.ready_with_redis,
            options.envoy.needs_limits(),
        );
        let probe = followers::probe(parts.store.clone(), health.clone());
        let mut followers = JoinSet::new();
        followers.spawn(probe);
        let mut limits = Vec::new();
        if let (Some(loaded), Some(door)) = (loaded.source, &parts.envoy) {
            limits.push(loaded.summary());
            if let Some(first) = loaded.first {
                followers::put(first, door, &health);
            }
            let follower = followers::limits(loaded.source, door.clone(), health.clone());
            followers.spawn(follower);
        }
        if let (Some(documents), Some(path)) = (documents, &options.rules.rules) {
            let count = documents.gate.handle().limits().len();
            limits.push(format!("{} (limits: {count})", path.display()));
        }
        let flags = options.ports.clone();
        let (grpc, reporter) = doors::grpc(&parts);
        let (http, reservations) = doors::http(options, &parts, &health);
        let metrics = doors::metrics(&flags.metrics_path, &parts);
        let admin = doors::admin(options, &parts, &health, metrics.clone())?;
        let mut certificates = loaded.certificates;
        let mut bind = async |protocol: Protocol, address, router| {
            let certificates = certificates.remove(protocol.name()).map(Arc::new);
            if let Some(certificates) = certificates.clone() {
                let follower = followers::certificates(protocol.name(), certificates);
                followers.spawn(follower);
            }
            BoundPort::bind(protocol, address, &flags, certificates, router).await
        };
        let grpc = bind(Protocol::Grpc, flags.grpc_address(), grpc).await?;
        let http = bind(Protocol::Http, flags.http_address(), http).await?;
        let admin = bind(Protocol::Admin, flags.admin, admin).await?;
        let metrics = match flags.metrics {
            Some(address) => Some(bind(Protocol::Metrics, address, metrics).await?),
            None => None,
        };
        let summary = format!(
            "tower-quota-server {} serves gRPC on {}, HTTP on {}, {} on {}{}, limits of {}, counted in {}",
            env!("CARGO_PKG_VERSION"),
            grpc.address,
            http.address,
            match options.rules.has_admin() {
                true => "the admin API and metrics",
                false => "metrics without an admin API",
            },
            admin.address,
            match &metrics {
                Some(metrics) => format!(", metrics on {}", metrics.address),
                None => String::new(),
            },
            limits.join(" and "),
            parts.store.place(),
        );
        Ok(Self {
            grpc,
            http,
            admin,
            metrics,
            parts,
            reservations,
            health,
            reporter,
            followers,
            flags,
            summary,
        })
    }

    /// Returns the bound address for gRPC.
    #[must_use]
    pub const fn grpc_address(&self) -> SocketAddr {
        self.grpc.address
    }

    /// Returns the bound address for HTTP.
    #[must_use]
    pub const fn http_address(&self) -> SocketAddr {
        self.http.address
    }

    /// Returns the bound address of the admin API and the metrics.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.admin.address
    }

    /// Returns a line about what the server serves.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Serves until the signal, and follows changes of files. Then drains, and closes the counters.
    pub async fn run(self, signal: impl Future<Output = ()>) {
        let ready = followers::report(&self.health, &self.reporter).await;
        let (health, reporter) = (self.health.clone(), self.reporter.clone());
        let mut followers = self.followers;
        followers.spawn(followers::reports(health, reporter, ready));
        let (drain, draining) = watch::channel(false);
        let mut doors = JoinSet::new();
        for port in [self.grpc, self.http] {
            doors.spawn(port.serve(draining.clone()));
        }
        // Event streams of admins have no end, so nobody waits for them.
        let (_open, forever) = watch::channel(false);
        let mut admins = JoinSet::new();
        for port in [Some(self.admin), self.metrics].into_iter().flatten() {
            admins.spawn(port.serve(forever.clone()));
        }
        signal.await;

        self.health.end();
        followers::report(&self.health, &self.reporter).await;
        tracing::info!(
            "the server is not ready any more, and ends after {:?}",
            self.flags.drain_delay
        );
        sleep(self.flags.drain_delay).await;
        drain.send_replace(true);
        let drained = async { while doors.join_next().await.is_some() {} };
        if timeout(self.flags.drain, drained).await.is_err() {
            tracing::warn!("calls are still running after {:?}", self.flags.drain);
        }
        if let Some(reservations) = &self.reservations {
            // A call that still runs keeps the router, so the router refunds nothing.
            reservations.close();
        }
        if let Some(documents) = &self.parts.documents {
            documents.live.close(CLOSE).await;
        }
        if !self.parts.store.close(CLOSE).await {
            tracing::warn!("the counters have not got all units back");
        }
        tracing::info!("the server has ended");
    }
}

/// Checks everything that a server with these flags would load, without Redis.
///
/// # Errors
/// Returns all flags and files that cannot be used.
pub async fn check(options: &Options) -> Result<(), StartError> {
    let loaded = Loaded::load(options, true).await?;
    let health = Health::new("memory", None, None, false, false);
    drop(doors::admin(
        options,
        &loaded.parts,
        &health,
        Router::new(),
    )?);
    Ok(())
}
