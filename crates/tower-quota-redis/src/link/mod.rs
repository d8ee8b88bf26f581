//! Connections to a server, a primary under sentinels, a cluster or a pool, behind one type.

mod attempts;
mod backend;
mod call_error;
mod cluster;
mod election;
mod pool;
mod reconnecting;
mod request;
mod sentinel;
mod server;
#[cfg(feature = "tls")]
mod tls;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use deadpool_redis::Pool;
use redis::aio::PubSub;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult, Value};
use tokio::runtime::Handle;

pub(crate) use self::call_error::CallError;
use self::cluster::Cluster;
use self::election::Address;
use self::pool::Pooled;
use self::reconnecting::Reconnecting;
use self::request::LinkRequest;
pub(crate) use self::request::Several;
use self::sentinel::Sentinels;
use self::server::Server;

/// A cluster's client waits for each of its nodes. It has this share of the connect timeout for one.
const NODE_SHARE: u32 = 4;

/// A connection to the server, replaced when lost, shared by all calls that are made on it.
#[derive(Clone)]
pub(crate) enum Link {
    /// To one server.
    Server(Arc<Reconnecting<Server>>),
    /// To a primary that sentinels find.
    Sentinels(Arc<Reconnecting<Sentinels>>),
    /// To all nodes of a cluster.
    Cluster(Arc<Reconnecting<Cluster>>),
    /// Out of the user's pool.
    Pool(Arc<Reconnecting<Pooled>>),
}

/// The settings of a link's connections.
#[derive(Clone)]
pub(crate) struct LinkSettings {
    /// The longest that an attempt to connect may take.
    pub(crate) connect_timeout: Duration,
    /// The runtime that connections live on; that of the first caller if there is none.
    pub(crate) runtime: Option<Handle>,
}

impl LinkSettings {
    /// The longest that an attempt to connect may take, by default.
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
}

impl Link {
    /// Makes a link through a connection of its own.
    pub(crate) fn to_server(server: &ConnectionInfo, settings: LinkSettings) -> Result<Self, RedisError> {
        let server = Server::new(server, settings.connect_timeout)?;
        Ok(Self::Server(Arc::new(Reconnecting::new(server, settings.runtime))))
    }

    /// Makes a link to the primary that these sentinels know by the host of `primary`.
    pub(crate) fn through_sentinels(
        sentinels: Vec<ConnectionInfo>,
        primary: ConnectionInfo,
        settings: LinkSettings,
    ) -> Result<Self, RedisError> {
        let sentinels = Sentinels::new(sentinels, primary, settings.connect_timeout)?;
        Ok(Self::Sentinels(Arc::new(Reconnecting::new(sentinels, settings.runtime))))
    }

    /// Makes a link to the cluster that these nodes belong to. `trust` holds the certificates to trust, in PEM,
    /// instead of the system's.
    pub(crate) fn to_cluster(
        nodes: Vec<ConnectionInfo>,
        trust: Option<Vec<u8>>,
        settings: LinkSettings,
    ) -> Result<Self, RedisError> {
        let cluster = Cluster::new(nodes, trust, settings.connect_timeout / NODE_SHARE)?;
        Ok(Self::Cluster(Arc::new(Reconnecting::new(cluster, settings.runtime))))
    }

    /// Makes a link through a connection of a pool.
    pub(crate) fn from_pool(pool: Pool, settings: LinkSettings) -> Self {
        let pooled = Pooled::new(pool, settings.connect_timeout);
        Self::Pool(Arc::new(Reconnecting::new(pooled, settings.runtime)))
    }

    /// Waits until there is a connection, or an attempt to make one has failed.
    pub(crate) async fn connect(&self) -> Result<(), CallError> {
        match self {
            Self::Server(link) => link.connect().await,
            Self::Sentinels(link) => link.connect().await,
            Self::Cluster(link) => link.connect().await,
            Self::Pool(link) => link.connect().await,
        }
    }

    /// Begins to connect in the background.
    pub(crate) fn connect_in_background(&self) {
        match self {
            Self::Server(link) => link.connect_in_background(),
            Self::Sentinels(link) => link.connect_in_background(),
            Self::Cluster(link) => link.connect_in_background(),
            Self::Pool(link) => link.connect_in_background(),
        }
    }

    /// Returns the instant since which calls go to the servers that they go to now.
    pub(crate) fn target_since(&self) -> Option<Instant> {
        match self {
            Self::Server(link) => link.target_since(),
            Self::Sentinels(link) => link.target_since(),
            Self::Cluster(link) => link.target_since(),
            Self::Pool(link) => link.target_since(),
        }
    }

    /// Makes another connection in the background, to replace one that is in doubt.
    pub(crate) fn replace(&self) {
        match self {
            Self::Server(link) => link.replace(),
            Self::Sentinels(link) => link.replace(),
            Self::Cluster(link) => link.replace(),
            Self::Pool(link) => link.replace(),
        }
    }

    /// Makes a connection for announcements.
    pub(crate) async fn subscriber(&self) -> RedisResult<PubSub> {
        match self {
            Self::Server(link) => link.subscriber().await,
            Self::Sentinels(link) => link.subscriber().await,
            Self::Cluster(link) => link.subscriber().await,
            Self::Pool(link) => link.subscriber().await,
        }
    }

    /// Sends a request once, to the partition that a key stands for.
    pub(crate) async fn run(&self, key: &str, request: &impl LinkRequest) -> Result<Value, CallError> {
        match self {
            Self::Server(link) => link.run(key, request).await,
            Self::Sentinels(link) => link.run(key, request).await,
            Self::Cluster(link) => link.run(key, request).await,
            Self::Pool(link) => link.run(key, request).await,
        }
    }
}

/// Returns the settings for another server that is called in the same way.
fn at_address(settings: ConnectionInfo, (host, port): Address) -> ConnectionInfo {
    let address = match settings.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    settings.set_addr(address)
}

/// Reads a URL, with the certificates to trust, instead of the system's.
pub(crate) fn address(url: &str, trust: Option<&[u8]>) -> Result<ConnectionInfo, RedisError> {
    #[cfg(feature = "tls")]
    if let Some(pem) = trust
        && url.starts_with("rediss://")
    {
        return redis::Client::build_with_tls(url, tls::trusting(pem))
            .map(|client| client.get_connection_info().clone());
    }
    let _ = trust;
    url.into_connection_info()
}
