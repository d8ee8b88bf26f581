//! The contenders: tower-quota, and what one writes without it.

use std::error::Error;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Script};
use tower_quota_core::{Charge, Key, Name, Quota, Store};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::RedisServer;

/// What a request is limited by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One limit on one subject.
    One,
    /// Three limits on one subject.
    Three,
    /// Three limits, two of them on one subject and one on another.
    ThreeOnTwo,
    /// Three limits on one subject, the slowest of which takes half a minute to forget a request.
    Slow,
    /// Three limits on one subject, the slowest of which takes an hour to forget a request.
    Slowest,
}

impl Shape {
    /// How many script calls the peers make.
    pub(super) fn limits(self) -> usize {
        if matches!(self, Self::Three | Self::ThreeOnTwo) { 3 } else { 1 }
    }
}

/// Rates that nearly never refuse, so that every contender does its full work: a refusal is cheaper.
pub(super) const RATES: [u64; 3] = [1_000, 10_000, 100_000];

const LIMITS: [(Name, Quota); 3] = [
    (Name::new("second"), Quota::per_second(RATES[0])),
    (Name::new("minute"), Quota::per_minute(RATES[1])),
    (Name::new("hour"), Quota::per_hour(RATES[2])),
];
/// Rates that remember a request long enough for a million subjects to be remembered at a time.
const SLOW: [(Name, Quota); 3] = [
    (Name::new("second"), Quota::per_second(10)),
    (Name::new("minute"), Quota::per_minute(60)),
    (Name::new("hour"), Quota::per_hour(120)),
];
const SLOWEST: (Name, Quota) = (Name::new("day"), Quota::per_day(24));
pub(super) const PERIODS: [u64; 3] = [1_000_000, 60_000_000, 3_600_000_000];

/// Each shape has subjects of its own, as a service has whose policy does not change with every request.
const USERS: [Name; 5] = [
    Name::new("user of one"),
    Name::new("user of three"),
    Name::new("user of two"),
    Name::new("slow user"),
    Name::new("slowest user"),
];
const TEAM: Name = Name::new("team");

/// tower-quota, one decision for all limits.
pub(super) async fn tower_quota(store: RedisStore, shape: Shape, key: u64) {
    let user = Key::number(USERS[shape as usize], key);
    let team = Key::number(TEAM, key / 2);
    let on = |limit: usize, key| Charge::new(LIMITS[limit].0, &LIMITS[limit].1, key);
    let slow = |limit: usize| Charge::new(SLOW[limit].0, &SLOW[limit].1, &user);
    let decided = match shape {
        Shape::One => store.check(&[on(0, &user)]),
        Shape::Three => store.check(&[on(0, &user), on(1, &user), on(2, &user)]),
        Shape::ThreeOnTwo => store.check(&[on(0, &user), on(1, &user), on(2, &team)]),
        Shape::Slow => store.check(&[slow(0), slow(1), slow(2)]),
        Shape::Slowest => store.check(&[slow(0), slow(1), Charge::new(SLOWEST.0, &SLOWEST.1, &user)]),
    };
    if let Err(error) = decided.await {
        eprintln!("tower-quota: {error}");
    }
}

/// A script call per limit, sent together over one multiplexed connection.
pub(super) async fn multiplexed(mut connection: MultiplexedConnection, sha: String, shape: Shape, key: u64) {
    if let Err(error) = calls(&sha, shape, key).query_async::<Vec<(u8, u64, u64)>>(&mut connection).await {
        eprintln!("multiplexed: {error}");
    }
}

/// A script call per limit, sent together over a connection from a pool.
pub(super) async fn pooled(pool: deadpool_redis::Pool, sha: String, shape: Shape, key: u64) {
    match pool.get().await {
        Ok(mut connection) => {
            if let Err(error) = calls(&sha, shape, key).query_async::<Vec<(u8, u64, u64)>>(&mut connection).await {
                eprintln!("pooled: {error}");
            }
        }
        Err(error) => eprintln!("pooled: {error}"),
    }
}

/// The ceiling: a command that does nothing.
pub(super) async fn ping(mut connection: MultiplexedConnection) {
    if let Err(error) = redis::cmd("PING").query_async::<()>(&mut connection).await {
        eprintln!("ping: {error}");
    }
}

fn calls(sha: &str, shape: Shape, key: u64) -> Pipeline {
    let mut calls = redis::pipe();
    for limit in 0..shape.limits() {
        let subject = if shape == Shape::ThreeOnTwo && limit == 2 { key / 2 } else { key };
        // Of the slow shapes only one limit is ever asked for: an hour for each request, so that it is still there.
        let is_slow = matches!(shape, Shape::Slow | Shape::Slowest);
        let interval = if is_slow { 3_600_000_000 } else { PERIODS[limit] / RATES[limit] };
        calls
            .cmd("EVALSHA")
            .arg(sha)
            .arg(1)
            .arg(format!("limit:{}:{subject:016}", LIMITS[limit].0))
            .arg(interval)
            .arg(if is_slow { 23 * interval } else { PERIODS[limit] - interval });
    }
    calls
}

/// What all contenders share: the server, and a connection of each kind.
pub(super) struct Field {
    pub(super) server: RedisServer,
    pub(super) store: RedisStore,
    /// On two connections instead of one.
    pub(super) paired: RedisStore,
    /// In as many partitions as in a cluster.
    pub(super) parted: RedisStore,
    pub(super) connection: MultiplexedConnection,
    pub(super) pool: deadpool_redis::Pool,
    pub(super) sha: String,
    #[cfg(feature = "limitador")]
    pub(super) limitador: std::sync::Arc<::limitador::AsyncRateLimiter>,
}

impl Field {
    pub(super) async fn prepare() -> Result<Self, Box<dyn Error>> {
        let server = RedisServer::start();
        // Both sides get TCP_NODELAY and a deadline that a busy machine does not reach: measured is work, not luck.
        let deadline = std::time::Duration::from_secs(5);
        let store = RedisStore::options().deadline(deadline).connect(&server.url()).await?;
        let number = |number| std::num::NonZeroUsize::new(number).unwrap_or(std::num::NonZeroUsize::MIN);
        let options = || RedisStore::options().deadline(deadline);
        let paired = options().connections(number(2)).connect(&server.url()).await?;
        let parted = options().partitions(number(64)).connect(&server.url()).await?;
        let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = redis::IntoConnectionInfo::into_connection_info(server.url())?.set_tcp_settings(settings);
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(deadline));
        let client = redis::Client::open(info)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let pool = deadpool_redis::Config::from_url(server.url())
            .builder()?
            .max_size(64)
            .runtime(deadpool_redis::Runtime::Tokio1)
            .build()?;
        let script = Script::new(include_str!("gcra.lua"));
        script.prepare_invoke().load_async(&mut connection).await?;
        let sha = script.get_hash().to_owned();
        Ok(Self {
            #[cfg(feature = "limitador")]
            limitador: super::limitador::prepare(&server.url()).await?,
            server,
            store,
            paired,
            parted,
            connection,
            pool,
            sha,
        })
    }
}
