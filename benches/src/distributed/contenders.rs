//! The ways to limit a key that are compared. Each counts windows of a second.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Quota, Store};
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;
use trypema::hybrid::HybridRateLimiterProvider;
use trypema::redis::RedisKey;
use trypema::{RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::UNITS;
use super::decide::Decide;

const EXACT: &str = "tower-quota, exact";
const LEASED: &str = "tower-quota, leased";
const TRYPEMA: &str = "trypema, hybrid";
#[cfg(feature = "limitador")]
const LIMITADOR: &str = "limitador, cached";
const SCRIPT: &str = "redis-rs, INCR and EXPIRE";

pub(super) const ALL: &[&str] = &[
    EXACT,
    LEASED,
    TRYPEMA,
    #[cfg(feature = "limitador")]
    LIMITADOR,
    SCRIPT,
];

/// Long enough for every answer: a missed one would hide a latency.
const DEADLINE: Duration = Duration::from_secs(2);

/// Connects a contender.
pub(super) async fn connect(contender: &str, url: &str) -> Result<Decide, Box<dyn Error>> {
    match contender {
        EXACT => Ok(through(store(url).await?)),
        LEASED => Ok(through(Leased::new(store(url).await?))),
        TRYPEMA => trypema(url).await,
        #[cfg(feature = "limitador")]
        LIMITADOR => super::limitador::connect(url).await,
        SCRIPT => script(url).await,
        _ => Err(format!("there is no contender {contender}").into()),
    }
}

async fn store(url: &str) -> Result<RedisStore, Box<dyn Error>> {
    Ok(RedisStore::options()
        .deadline(DEADLINE)
        .connect(url)
        .await?)
}

/// Decides with a store of tower-quota.
fn through(store: impl Store) -> Decide {
    let quota = Quota::per_second(UNITS.into()).fixed_window();
    let key = Key::number(Name::new("client"), 1);
    Box::new(move || {
        let decided = store.check(&[Charge::new("requests", &quota, &key)]);
        Box::pin(async move { Some(decided.await.ok()?.is_allowed()) })
    })
}

/// trypema's hybrid provider, which counts in memory and writes to Redis every 10 ms, its default.
async fn trypema(url: &str) -> Result<Decide, Box<dyn Error>> {
    let connection = redis::Client::open(url)?.get_connection_manager().await?;
    let provider = HybridRateLimiterProvider::builder(connection)
        .window_size(WindowSize::seconds(1)?)
        .build()?;
    let rate = RateLimit::per_second(UNITS.into())?;
    let key = RedisKey::try_from("client".to_owned())?;
    Ok(Box::new(move || {
        let (provider, key) = (Arc::clone(&provider), key.clone());
        Box::pin(async move {
            // The documentation of trypema recommends this order for hot paths.
            let decision = match provider.absolute().try_inc(key.as_key_ref(), 1) {
                Ok(Some(decision)) => decision,
                _ => provider.absolute().inc(&key, &rate, 1).await.ok()?,
            };
            Some(matches!(decision, RateLimitDecision::Allowed))
        })
    }))
}

/// The script that most services write.
async fn script(url: &str) -> Result<Decide, Box<dyn Error>> {
    const WINDOW: &str = "
        local used = redis.call('INCR', KEYS[1])
        if used == 1 then redis.call('EXPIRE', KEYS[1], 1) end
        return used <= tonumber(ARGV[1]) and 1 or 0";
    let (connection, sha) = crate::redis::connect(url, DEADLINE, WINDOW).await?;
    Ok(Box::new(move || {
        let mut connection = connection.clone();
        let mut call = redis::cmd("EVALSHA");
        call.arg(&sha).arg(1).arg("client").arg(UNITS);
        Box::pin(async move { call.query_async(&mut connection).await.ok() })
    }))
}
