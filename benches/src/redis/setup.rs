//! The servers, and the connections of each contender.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Script};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::{RedisCluster, RedisServer};

/// A deadline that no decision misses on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// The peers' script: a limit by GCRA.
pub(super) const GCRA: &str = include_str!("gcra.lua");

pub(super) struct Setup {
    pub(super) server: RedisServer,
    pub(super) cluster: RedisCluster,
    pub(super) store: RedisStore,
    /// On two connections instead of one.
    pub(super) paired: RedisStore,
    /// In as many partitions as in a cluster.
    pub(super) parted: RedisStore,
    /// On the cluster.
    pub(super) clustered: RedisStore,
    pub(super) connection: MultiplexedConnection,
    pub(super) pool: deadpool_redis::Pool,
    /// The name of the peers' script.
    pub(super) sha: String,
    #[cfg(feature = "limitador")]
    pub(super) limitador: std::sync::Arc<::limitador::AsyncRateLimiter>,
}

impl Setup {
    pub(super) async fn prepare() -> Result<Self, Box<dyn Error>> {
        // Commands above 2 ms are counted.
        let server = RedisServer::start_with(&[
            "--slowlog-log-slower-than",
            "2000",
            "--slowlog-max-len",
            "1000000",
        ]);
        let mut cluster = RedisCluster::start();
        // Three primaries and nothing else, as the server they are compared with has no replica.
        (PRIMARIES..2 * PRIMARIES).for_each(|replica| cluster.kill(replica));
        let options = || RedisStore::options().deadline(DEADLINE);
        let number = |number| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        let (connection, sha) = connect(&server.url(), DEADLINE, GCRA).await?;
        let pool = deadpool_redis::Config::from_url(server.url())
            .builder()?
            .max_size(64)
            .runtime(deadpool_redis::Runtime::Tokio1)
            .build()?;
        Ok(Self {
            store: options().connect(&server.url()).await?,
            paired: options()
                .connections(number(2))
                .connect(&server.url())
                .await?,
            parted: options()
                .partitions(number(64))
                .connect(&server.url())
                .await?,
            clustered: options()
                .cluster(cluster.urls().into_iter().take(PRIMARIES))
                .await?,
            #[cfg(feature = "limitador")]
            limitador: super::limitador::prepare(&server.url()).await?,
            server,
            cluster,
            connection,
            pool,
            sha,
        })
    }

    /// Returns the cluster's primaries.
    pub(super) fn primaries(&self) -> [&RedisServer; PRIMARIES] {
        std::array::from_fn(|primary| self.cluster.node(primary))
    }
}

pub(super) const PRIMARIES: usize = 3;

/// Opens a peer's connection, with TCP_NODELAY as tower-quota's, and loads its script. Returns its name too.
pub(crate) async fn connect(
    url: &str,
    deadline: Duration,
    script: &str,
) -> Result<(MultiplexedConnection, String), Box<dyn Error>> {
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = url.into_connection_info()?.set_tcp_settings(settings);
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(deadline));
    let mut connection = Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let script = Script::new(script);
    script.prepare_invoke().load_async(&mut connection).await?;
    Ok((connection, script.get_hash().to_owned()))
}
