//! A server that runs until a signal.

use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower_quota_core::{BoxStore, MemoryStore, RefusalCache, Store};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::envoy::{EnvoyDoor, EnvoyFiles, Problems};
use crate::messages::ratelimit::rate_limit_service_server::SERVICE_NAME;
use crate::options::Options;

/// The most calls of a connection at the same time.
const STREAMS: u32 = 1_024;
/// The time between two looks at the files of the limits.
const POLL: Duration = Duration::from_secs(1);
/// The longest time in which running calls end after a signal.
const DRAIN: Duration = Duration::from_secs(10);
/// The longest time in which refunds in flight arrive.
const CLOSE: Duration = Duration::from_secs(1);

/// An error of the start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No folder with limits.
    #[error("there are no limits to serve: give --envoy PATH, or set RUNTIME_ROOT")]
    NoLimits,
    /// Problems of the limits.
    #[error("the limits in {} cannot be used\n{problems}", folder.display())]
    Limits {
        /// The folder.
        folder: PathBuf,
        /// The problems.
        problems: Problems,
    },
    /// A Redis server that cannot be used.
    #[error("--redis (REDIS_URL): {0}")]
    Redis(#[from] RedisStoreError),
    /// An address that cannot be used.
    #[error("--grpc {address}: {error}: choose another address or port")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// A connection that cannot be served.
    #[error("gRPC: {0}")]
    Grpc(#[from] tonic::transport::Error),
}

/// A server with a bound address.
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    files: EnvoyFiles,
    door: EnvoyDoor<BoxStore>,
    store: BoxStore,
    summary: String,
}

impl BoundServer {
    /// Loads the limits, opens the store, and binds the address.
    ///
    /// # Errors
    /// Returns the flag or the files that cannot be used.
    pub async fn bind(options: &Options) -> Result<Self, StartError> {
        let folder = options.folder().ok_or(StartError::NoLimits)?;
        let opened = EnvoyFiles::open(&folder, options.merge_domains);
        let (files, config) = match opened {
            Ok(opened) => opened,
            Err(problems) => return Err(StartError::Limits { folder, problems }),
        };
        let (store, place) = match options.redis_url() {
            None => (BoxStore::new(MemoryStore::new()), "memory"),
            Some(url) => {
                let redis = RedisStore::options().deadline(options.deadline.into());
                let redis = redis.connect_lazily().connect(&url).await?;
                (BoxStore::new(RefusalCache::new(redis)), "Redis")
            }
        };
        let address = options.grpc_address();
        let refused = |error| StartError::Address { address, error };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let summary = format!(
            "tower-quota-server {} serves Envoy on {address}, from {} (domains: {}, limits: {}), counted in {place}",
            env!("CARGO_PKG_VERSION"),
            folder.display(),
            config.domains(),
            config.limits(),
        );
        Ok(Self {
            listener,
            address,
            files,
            door: EnvoyDoor::new(config, store.clone(), options.envoy_options()),
            store,
            summary,
        })
    }

    /// Returns the bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a line about what the server serves.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Serves until the signal, and follows changes of the files. Then reports unhealthy, ends running calls, and closes the store.
    ///
    /// # Errors
    /// Returns an error of the transport.
    pub async fn run(self, signal: impl Future<Output = ()>) -> Result<(), StartError> {
        let (health, health_service) = tonic_health::server::health_reporter();
        let serving = tonic_health::ServingStatus::Serving;
        health.set_service_status(SERVICE_NAME, serving).await;
        let connections = TcpIncoming::from(self.listener).with_nodelay(Some(true));
        let (drain, drained) = tokio::sync::oneshot::channel::<()>();
        let server = Server::builder()
            .max_concurrent_streams(STREAMS)
            .add_service(health_service)
            .add_service(self.door.service())
            .serve_with_incoming_shutdown(connections, async {
                // A dropped sender ends the server too.
                let _ = drained.await;
            });
        let mut server = core::pin::pin!(server);
        tokio::select! {
            ended = &mut server => ended?,
            () = follow(self.files, self.door.clone()) => {}
            () = signal => {
                let not_serving = tonic_health::ServingStatus::NotServing;
                for service in ["", SERVICE_NAME] {
                    health.set_service_status(service, not_serving).await;
                }
                let _ = drain.send(());
                if let Ok(ended) = tokio::time::timeout(DRAIN, server).await {
                    ended?;
                }
            }
        }
        self.store.close(CLOSE).await;
        Ok(())
    }
}

/// Replaces the limits whenever their files change. Files with problems leave the limits as they are.
async fn follow(mut files: EnvoyFiles, door: EnvoyDoor<BoxStore>) {
    let mut ticks = tokio::time::interval(POLL);
    loop {
        ticks.tick().await;
        let polled = tokio::task::spawn_blocking(move || {
            let changed = files.poll();
            (files, changed)
        });
        let Ok((polled, changed)) = polled.await else {
            // The runtime has ended.
            return;
        };
        files = polled;
        match changed {
            Some(Ok(config)) => {
                println!("tower-quota-server: new limits: {}", config.limits());
                door.replace(config);
            }
            Some(Err(problems)) => {
                eprintln!(
                    "tower-quota-server: the new limits cannot be used, the earlier ones stay\n{problems}"
                );
            }
            None => {}
        }
    }
}

impl fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
