//! Holds the connections to a server, to a primary under sentinels, to a cluster, or from a pool.

mod attempts;
mod backend;
mod call_error;
mod cluster;
mod election;
#[cfg(feature = "pool")]
mod pool;
mod reconnecting;
mod request;
mod sentinel;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod tracked;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "pool")]
use deadpool_redis::Pool;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, RedisResult, Value};
use tokio::runtime::Handle;

#[cfg(feature = "credentials")]
pub(crate) use crate::credentials::Provider;
use crate::wire::Call;

pub(crate) use self::call_error::CallError;
use self::cluster::Cluster;
use self::election::Address;
#[cfg(feature = "pool")]
use self::pool::Pooled;
pub(crate) use self::reconnecting::LateAnswer;
use self::reconnecting::Reconnecting;
pub(crate) use self::request::{LinkRequest, Several};
use self::sentinel::Sentinels;
use self::server::Server;

#[derive(Clone)]
pub(crate) enum Link {
    Server(Arc<Reconnecting<Server>>),
    Sentinels(Arc<Reconnecting<Sentinels>>),
    Cluster(Arc<Reconnecting<Cluster>>),
    #[cfg(feature = "pool")]
    Pool(Pooled),
}

#[derive(Clone)]
pub(crate) struct LinkSettings {
    pub(crate) connect_timeout: Duration,
    /// The runtime of the connections, by default the runtime of the first caller.
    pub(crate) runtime: Option<Handle>,
    pub(crate) credentials: Option<Provider>,
}

/// Stands for a provider, which cannot exist without the feature `credentials`.
#[cfg(not(feature = "credentials"))]
#[derive(Clone)]
pub(crate) enum Provider {}

impl LinkSettings {
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(task)),
            None => drop(tokio::spawn(task)),
        }
    }
}

/// The certificates for TLS, in PEM.
#[derive(Clone, Default)]
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "only TLS needs certificates")
)]
pub(crate) struct Certificates {
    /// The roots to trust instead of the certificates of the system.
    pub(crate) roots: Option<Vec<u8>>,
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone)]
pub(crate) enum Servers {
    One(ConnectionInfo),
    /// The host of `primary` is the name that the sentinels know.
    Sentinels {
        sentinels: Vec<ConnectionInfo>,
        primary: ConnectionInfo,
    },
    Cluster {
        nodes: Vec<ConnectionInfo>,
        certificates: Certificates,
    },
    #[cfg(feature = "pool")]
    Pool(Pool),
}

macro_rules! with_each {
    ($self:ident, $link:ident => $action:expr) => {
        match $self {
            Self::Server($link) => $action,
            Self::Sentinels($link) => $action,
            Self::Cluster($link) => $action,
            #[cfg(feature = "pool")]
            Self::Pool($link) => $action,
        }
    };
}

impl Link {
    pub(crate) fn new(
        servers: Servers,
        LinkSettings {
            connect_timeout,
            runtime,
            credentials,
        }: LinkSettings,
    ) -> RedisResult<Self> {
        Ok(match servers {
            Servers::One(server) => Self::Server(Arc::new(Reconnecting::new(
                Server::new(server, connect_timeout, credentials)?,
                runtime,
            ))),
            Servers::Sentinels { sentinels, primary } => {
                let sentinels = Sentinels::new(sentinels, primary, connect_timeout, credentials)?;
                Self::Sentinels(Arc::new(Reconnecting::new(sentinels, runtime)))
            }
            Servers::Cluster {
                nodes,
                certificates,
            } => {
                let cluster = Cluster::new(nodes, certificates, connect_timeout, credentials)?;
                Self::Cluster(Arc::new(Reconnecting::new(cluster, runtime)))
            }
            #[cfg(feature = "pool")]
            Servers::Pool(pool) => Self::Pool(Pooled::new(pool, connect_timeout, runtime)),
        })
    }

    /// Returns the address of the node that owns a key, in a connected cluster.
    pub(crate) fn node_of(&self, key: &str) -> Option<String> {
        with_each!(self, link => link.node_of(key))
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    pub(crate) async fn connect(&self) -> RedisResult<()> {
        with_each!(self, link => link.connect().await)
    }

    pub(crate) fn replace(&self) {
        with_each!(self, link => link.replace());
    }

    pub(crate) async fn locate(&self, key: &str) -> RedisResult<ConnectionInfo> {
        with_each!(self, link => link.locate(key).await)
    }

    pub(crate) async fn run(
        &self,
        key: &str,
        request: &impl LinkRequest,
    ) -> Result<Value, CallError> {
        with_each!(self, link => link.run(key, request).await)
    }

    /// Runs a call until its deadline, unless there is no connection by an earlier instant. If the call is late, returns
    /// the answer that the call may still get.
    pub(crate) async fn run_until(
        &self,
        connect_by: Instant,
        deadline: Instant,
        key: Arc<str>,
        call: Call,
    ) -> Result<Result<Value, CallError>, LateAnswer> {
        with_each!(self, link => link.run_until(connect_by, deadline, key, call).await)
    }
}

/// Bounds an answer by a time. Returns an error with the text if the answer takes longer.
pub(crate) async fn within<T>(
    timeout: Duration,
    late: &'static str,
    what: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    tokio::time::timeout(timeout, what)
        .await
        .unwrap_or_else(|_| Err((ErrorKind::Io, late).into()))
}

async fn with_credentials(
    address: ConnectionInfo,
    credentials: Option<&Provider>,
    timeout: Duration,
) -> RedisResult<ConnectionInfo> {
    #[cfg(feature = "credentials")]
    if let Some(provider) = credentials {
        let late = "the credentials provider did not answer in time";
        let (user, password) = within(timeout, late, provider.fetch()).await?;
        let settings = address.redis_settings().clone();
        let settings = settings.set_username(user).set_password(password);
        return Ok(address.set_redis_settings(settings));
    }
    let _ = (credentials, timeout);
    Ok(address)
}

fn at_address(settings: ConnectionInfo, (host, port): Address) -> ConnectionInfo {
    let address = match settings.addr().clone() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    settings.set_addr(address)
}

/// Returns the host of an address, which is the name of a primary under sentinels.
pub(crate) fn host_of(address: &ConnectionInfo) -> Option<String> {
    match address.addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => Some(host.clone()),
        _ => None,
    }
}

/// Adds the certificates to an address with TLS.
pub(crate) fn with_certificates(
    address: ConnectionInfo,
    certificates: &Certificates,
) -> RedisResult<ConnectionInfo> {
    #[cfg(feature = "tls")]
    if matches!(address.addr(), ConnectionAddr::TcpTls { .. })
        && let Some(certificates) = tls::of(certificates)
    {
        tls::check(&certificates)?;
        return redis::Client::build_with_tls(address, certificates)
            .map(|client| client.get_connection_info().clone());
    }
    let _ = certificates;
    Ok(address)
}
