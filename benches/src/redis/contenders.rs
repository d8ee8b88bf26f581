//! One decision by each contender: tower-quota, and code that a service writes without it.

use redis::Pipeline;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use tower_quota_core::{Charge, Key, Name, Store};
use tower_quota_redis::RedisStore;

use super::shape::{Request, Shape};

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
    connection: &mut impl ConnectionLike,
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

/// Calls a script per limit over a connection from a pool.
pub(super) async fn pooled(
    pool: &deadpool_redis::Pool,
    sha: &str,
    shape: Shape,
    draw: u64,
) -> bool {
    match pool.get().await {
        Ok(mut connection) => script_per_limit(&mut connection, sha, shape, draw).await,
        Err(_) => false,
    }
}

/// Sends a command that does nothing: the ceiling.
pub(super) async fn ping(connection: &mut MultiplexedConnection) -> bool {
    redis::cmd("PING")
        .query_async::<()>(connection)
        .await
        .is_ok()
}
