//! The contenders over Redis, the servers, and the limits of the requests.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Pipeline, Script};
use tower_quota_core::{Charge, Key, Name, Quota, Store};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::RedisStore;

pub(super) const TOWER_QUOTA: &str = "tower-quota";
pub(super) const TWO_CONNECTIONS: &str = "tower-quota, 2 connections";
pub(super) const PARTITIONED: &str = "tower-quota, 64 partitions";
pub(super) const CLUSTERED: &str = "tower-quota, a cluster of 3";
pub(super) const SCRIPT: &str = "redis-rs, a script per limit";
#[cfg(feature = "limitador")]
pub(super) const LIMITADOR: &str = "limitador";

/// A deadline that no decision misses on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// The script of the peers, the usual GCRA limiter: one limit, one key, one call.
///
/// `KEYS[1]` is the counter. `ARGV` has the emission interval and the burst tolerance in microseconds.
pub(super) const GCRA: &str = "
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local arrival = tonumber(redis.call('GET', KEYS[1])) or now
if arrival < now then arrival = now end
if arrival - now > tolerance then
  return { 0, 0, arrival - now - tolerance }
end
arrival = arrival + interval
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return { 1, math.floor((tolerance + interval - (arrival - now)) / interval), 0 }
";

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
    /// The name of the peers' script.
    pub(super) sha: String,
    #[cfg(feature = "limitador")]
    pub(super) limitador: std::sync::Arc<::limitador::AsyncRateLimiter>,
}

impl Setup {
    pub(super) async fn prepare() -> Result<Self, Box<dyn Error>> {
        let server = RedisServer::start();
        let mut cluster = RedisCluster::start();
        // Three primaries and nothing else, as the server they are compared with has no replica.
        (PRIMARIES..2 * PRIMARIES).for_each(|replica| cluster.kill(replica));
        let options = || RedisStore::options().deadline(DEADLINE);
        let number = |number| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        let (connection, sha) = connect(&server.url(), DEADLINE, GCRA).await?;
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
            limitador: limitador(&server.url()).await?,
            server,
            cluster,
            connection,
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

const TEAM: Name = Name::new("team");

/// Decides all limits at once with tower-quota. Returns whether it answered.
pub(super) async fn tower_quota(store: &RedisStore, shape: Shape, draw: u64) -> bool {
    let Request { client, asks } = shape.request(draw);
    let (client, team) = (
        Key::number(Name::new(shape.scope()), client),
        Key::number(TEAM, client / 2),
    );
    let charges: [Charge<'_>; 4] =
        std::array::from_fn(|ask| asks[ask.min(asks.len() - 1)].charge(&client, &team));
    store.check(&charges[..asks.len()]).await.is_ok()
}

/// Calls a script per limit with redis-rs, all sent together. Returns whether it answered.
pub(super) async fn script_per_limit(
    connection: &mut MultiplexedConnection,
    sha: &str,
    shape: Shape,
    draw: u64,
) -> bool {
    let Request { client, asks } = shape.request(draw);
    let mut calls = Pipeline::with_capacity(asks.len());
    for ask in asks {
        calls
            .cmd("EVALSHA")
            .arg(sha)
            .arg(1)
            .arg(format!(
                "{}:{}:{:016}",
                shape.scope(),
                ask.name,
                ask.counter(client)
            ))
            .arg(ask.interval())
            .arg(ask.tolerance());
    }
    calls
        .query_async::<Vec<(u8, u64, u64)>>(connection)
        .await
        .is_ok()
}

/// limitador with its Redis storage, as its server uses it: it reads counters in one command and updates them in a
/// pipeline of one script call per limit.
#[cfg(feature = "limitador")]
async fn limitador(
    url: &str,
) -> Result<std::sync::Arc<limitador::AsyncRateLimiter>, Box<dyn Error>> {
    use limitador::limit::Limit;
    use limitador::storage::redis::AsyncRedisStorage;

    let storage = AsyncRedisStorage::new(url).await?;
    let limiter = limitador::AsyncRateLimiter::new_with_storage(Box::new(storage));
    // What limitador calls a namespace is a list of limits.
    for shape in [Shape::One, Shape::Three] {
        for ask in shape.request(0).asks {
            let variables = vec!["user".try_into()?];
            let seconds = ask.period / 1_000_000;
            limiter.add_limit(Limit::new(
                shape.scope(),
                ask.units,
                seconds,
                vec![],
                variables,
            ));
        }
    }
    Ok(std::sync::Arc::new(limiter))
}

/// Returns whether limitador answered. It asks one limit or three on one key.
#[cfg(feature = "limitador")]
pub(super) async fn ask_limitador(
    limiter: &limitador::AsyncRateLimiter,
    shape: Shape,
    draw: u64,
) -> bool {
    use limitador::limit::Context;

    let Request { client, .. } = shape.request(draw);
    let shape = if shape == Shape::One {
        shape
    } else {
        Shape::Three
    };
    let variables = [("user".to_owned(), format!("{client:016}"))];
    let context = Context::from(std::collections::HashMap::from(variables));
    limiter
        .check_rate_limited_and_update(&shape.scope().into(), &context, 1)
        .await
        .is_ok()
}

/// One limit of a request.
struct Ask {
    name: &'static str,
    limit: Name,
    quota: Quota,
    units: u64,
    /// Microseconds.
    period: u64,
    /// Two clients share the counter.
    is_shared: bool,
}

impl Ask {
    const fn new(name: &'static str, units: u64, seconds: u64) -> Self {
        let quota = Quota::new(units, Duration::from_secs(seconds));
        Self {
            name,
            limit: Name::new(name),
            quota,
            units,
            period: seconds * 1_000_000,
            is_shared: false,
        }
    }

    const fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Returns the charge of the client's key or the team's.
    fn charge<'a>(&'a self, client: &'a Key<'a>, team: &'a Key<'a>) -> Charge<'a> {
        Charge::new(
            self.limit,
            &self.quota,
            if self.is_shared { team } else { client },
        )
    }

    /// Returns the number of the client or of the team.
    fn counter(&self, client: u64) -> u64 {
        if self.is_shared { client / 2 } else { client }
    }

    /// Returns the microseconds between units.
    fn interval(&self) -> u64 {
        self.period / self.units
    }

    /// Returns the microseconds that a client may be ahead.
    fn tolerance(&self) -> u64 {
        self.period - self.interval()
    }
}

/// Rates that nearly never refuse, so that all contenders do their full work. A request is forgotten within 36 ms, so
/// most requests find a full bucket.
static SHORT: [Ask; 3] = [
    Ask::new("second", 1_000, 1),
    Ask::new("minute", 10_000, 60),
    Ask::new("hour", 100_000, 3_600),
];
static TWO_KEYS: [Ask; 3] = [
    Ask::new("second", 1_000, 1),
    Ask::new("minute", 10_000, 60),
    Ask::new("hour", 100_000, 3_600).shared(),
];

/// Quotas that remember a request for a minute or longer: requests find what earlier ones have left.
static LASTING: [Ask; 4] = [
    Ask::new("hour", 6_000, 360_000),
    Ask::new("day", 14_400, 864_000),
    Ask::new("week", 50_400, 6_048_000),
    Ask::new("login", 28_800, 1_728_000),
];
/// The same policy with earlier quotas.
static OLD: [Ask; 3] = [
    Ask::new("hour", 12_000, 360_000),
    Ask::new("day", 12_000, 864_000),
    Ask::new("week", 100_800, 6_048_000),
];

/// Quotas that remember a request for an hour, for entries that are counted.
static STORED: [Ask; 3] = [
    Ask::new("hour", 100, 360_000),
    Ask::new("day", 240, 864_000),
    Ask::new("week", 1_680, 6_048_000),
];

/// The requests of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One limit.
    One,
    /// Three limits on one key.
    Three,
    /// Three limits, two of them on one key and one on another.
    ThreeOnTwo,
    /// Three limits on one key that remember requests longer.
    Lasting,
    /// Three limits on one key that remember requests for an hour, by ten million clients.
    Stored,
    /// Nine of ten as `Lasting`, one of ten the same and a fourth.
    Mixed,
    /// Half as `Lasting`, half with earlier quotas of all limits.
    QuotasInTurn,
}

/// A request: its client, and the limits it asks.
struct Request {
    client: u64,
    asks: &'static [Ask],
}

impl Shape {
    /// Returns the number of clients. Few where clients return, so that each returns often in a short run too.
    const fn clients(self) -> u64 {
        match self {
            Self::One | Self::Three | Self::ThreeOnTwo => 1_000_000,
            Self::Lasting | Self::Mixed | Self::QuotasInTurn => 20_000,
            Self::Stored => 10_000_000,
        }
    }

    /// Returns the request of a random number.
    fn request(self, draw: u64) -> Request {
        let (client, draw) = (draw % self.clients(), draw / self.clients());
        let asks = match self {
            Self::One => &SHORT[..1],
            Self::Three => &SHORT,
            Self::ThreeOnTwo => &TWO_KEYS,
            Self::Mixed if draw.is_multiple_of(10) => &LASTING,
            Self::QuotasInTurn if draw.is_multiple_of(2) => &OLD,
            Self::Stored => &STORED,
            Self::Lasting | Self::Mixed | Self::QuotasInTurn => &LASTING[..3],
        };
        Request { client, asks }
    }

    /// Returns the scope of the clients' keys. Each case has its own, so that cases share no entries.
    const fn scope(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Three => "three",
            Self::ThreeOnTwo => "two",
            Self::Lasting => "lasting",
            Self::Stored => "stored",
            Self::Mixed => "mixed",
            Self::QuotasInTurn => "turns",
        }
    }
}
