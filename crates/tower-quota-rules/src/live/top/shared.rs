//! The figures of all instances in Redis.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota::{TopClient, TopWindow};
use tower_quota_redis::{RedisConfigError, RedisConnection, RedisStore};

use super::list::{ListedClient, TopList};
use crate::live::store::{RedisRules, RuleStoreError, check_name};
use crate::live::time::Time;

/// The clients of each list that an instance publishes.
const PUBLISHED: usize = 64;
/// The longest readable key that is published, in bytes. Clients choose their keys.
const LONGEST_KEY: usize = 128;
/// An instance that has published nothing for this long is forgotten, in milliseconds.
const FORGOTTEN_AFTER: i64 = 3_600_000;
/// The member that each instance adds with a score of one, so that the sum counts the instances.
const INSTANCE: &str = "";

/// Shares the top clients of an instance with the others, through Redis.
///
/// Each instance publishes its figures once in an interval, in one round trip: at most 64 clients of each list, by the
/// hashes of their keys, with an expiry. [`LiveRules::top`](super::super::LiveRules::top) reads the sums of
/// all instances. No request waits for Redis.
///
/// It belongs to one layer: give each layer of a process its own name.
///
/// ```
/// use tower_quota_rules::live::{LiveOptions, SharedTop};
///
/// # fn options() -> Result<LiveOptions, Box<dyn std::error::Error>> {
/// let top = SharedTop::new("redis://127.0.0.1:6379", "api")?;
/// Ok(LiveOptions::new().shared_top(top))
/// # }
/// # assert!(options().is_ok());
/// ```
#[derive(Clone)]
#[must_use]
pub struct SharedTop {
    connection: RedisConnection,
    name: Arc<str>,
    /// The name of this instance: another one after each start.
    instance: Arc<str>,
    pub(super) every: Duration,
}

impl SharedTop {
    /// Uses the servers at a URL, which is one of those that [`RedisStore::connect`] takes. No connection is made yet.
    ///
    /// Instances with the same name share their figures: 1 to 64 letters, digits or characters of `-_.`. They must have
    /// the same [key seed](super::super::LiveOptions::key_seed), since clients are the same by their hashes.
    ///
    /// # Errors
    /// [`RuleStoreError::Config`] for an invalid URL or name.
    pub fn new(url: &str, name: &str) -> Result<Self, RuleStoreError> {
        Self::with(RedisConnection::new(url, RedisRules::DEADLINE), name)
    }

    /// Uses the servers of a store of counters, with its certificates, on a connection beside its own.
    ///
    /// # Errors
    /// As [`new`](Self::new); also for a store on a pool, which does not say where its server is.
    pub fn beside(counters: &RedisStore, name: &str) -> Result<Self, RuleStoreError> {
        Self::with(counters.connection(RedisRules::DEADLINE), name)
    }

    /// Sets how often the figures are published, 5 s by default and at least 100 ms.
    ///
    /// The figures of an instance that has ended are forgotten after three intervals.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(Duration::from_millis(100));
        self
    }

    fn with(
        connection: Result<RedisConnection, RedisConfigError>,
        name: &str,
    ) -> Result<Self, RuleStoreError> {
        check_name(name)?;
        Ok(Self {
            connection: connection.map_err(RuleStoreError::config)?,
            name: name.into(),
            instance: format!("{:016x}", fastrand::u64(..)).into(),
            every: Duration::from_secs(5),
        })
    }

    fn key(&self, is_busy: bool, window: TopWindow, part: &str) -> String {
        let list = if is_busy { "busy" } else { "limited" };
        let window = match window {
            TopWindow::Minute => "1m",
            TopWindow::TenMinutes => "10m",
            _ => "1h",
        };
        format!("quota:top:{{{}}}:{list}:{window}:{part}", self.name)
    }

    fn instances(&self) -> String {
        format!("quota:top:{{{}}}:instances", self.name)
    }

    fn longest(&self) -> u64 {
        u64::try_from((3 * self.every).as_millis()).unwrap_or(u64::MAX)
    }

    /// Publishes the figures of this instance: `top` returns the clients of a list in a window, those with most first.
    pub(super) async fn publish(
        &self,
        is_readable: bool,
        top: impl Fn(bool, TopWindow) -> Vec<ListedClient>,
    ) -> Result<(), RuleStoreError> {
        let mut pipe = redis::pipe();
        pipe.atomic();
        for window in [TopWindow::Minute, TopWindow::TenMinutes, TopWindow::Hour] {
            for is_busy in [false, true] {
                let key = self.key(is_busy, window, &self.instance);
                pipe.del(&key).zadd(&key, INSTANCE, 1);
                for client in top(is_busy, window).into_iter().take(PUBLISHED) {
                    let at_least = client.at_least;
                    // Members are the same on all instances.
                    let client = ListedClient {
                        key: client
                            .key
                            .filter(|key| is_readable && key.len() <= LONGEST_KEY),
                        at_least: 0,
                        at_most: None,
                        retry_after_ms: None,
                        ..client
                    };
                    let member =
                        serde_json::to_string(&client).map_err(|error| self.unreadable(error))?;
                    pipe.zadd(&key, member, at_least);
                }
                pipe.cmd("PEXPIRE").arg(&key).arg(self.longest());
            }
        }
        let (now, instances) = (Time::now().unix_millis(), self.instances());
        pipe.zadd(&instances, &*self.instance, now)
            .zrembyscore(&instances, "-inf", now - FORGOTTEN_AFTER)
            .cmd("PEXPIRE")
            .arg(&instances)
            .arg(FORGOTTEN_AFTER);
        self.run(&pipe.ignore()).await
    }

    /// Returns the sums of all instances.
    pub(super) async fn sums(
        &self,
        is_busy: bool,
        window: TopWindow,
    ) -> Result<TopList, RuleStoreError> {
        let instances = self.instances();
        let mut names = redis::pipe();
        names.zrange(&instances, 0, -1);
        let (names,): (Vec<String>,) = self.run(&names).await?;
        let sum = self.key(is_busy, window, "sum");
        let keys = names.iter().map(|name| self.key(is_busy, window, name));
        let keys: Vec<String> = keys.collect();
        if keys.is_empty() {
            return Ok(TopList {
                clients: Vec::new(),
                instances: Some(0),
            });
        }
        let mut pipe = redis::pipe();
        pipe.atomic()
            .zunionstore(&sum, &keys)
            .ignore()
            .cmd("PEXPIRE")
            .arg(&sum)
            .arg(self.longest())
            .ignore()
            .zscore(&sum, INSTANCE)
            .zrevrange_withscores(&sum, 0, TopClient::MOST as isize);
        let (instances, found): (Option<u64>, Vec<(String, u64)>) = self.run(&pipe).await?;
        // A member that a later version of the program wrote does not make the others void.
        let client = |(member, at_least): (String, u64)| {
            let client = serde_json::from_str::<ListedClient>(&member).ok()?;
            Some(ListedClient { at_least, ..client })
        };
        Ok(TopList {
            clients: found.into_iter().filter_map(client).collect(),
            instances: instances.or(Some(0)),
        })
    }

    async fn run<T: redis::FromRedisValue>(
        &self,
        pipe: &redis::Pipeline,
    ) -> Result<T, RuleStoreError> {
        let answer = self
            .connection
            .call(async |mut redis| pipe.query_async(&mut redis).await);
        answer
            .await
            .map_err(|error| RuleStoreError::unavailable(self.connection.server(), error))
    }

    fn unreadable(&self, error: serde_json::Error) -> RuleStoreError {
        RuleStoreError::unreadable(self.connection.server(), error)
    }
}

impl fmt::Debug for SharedTop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTop")
            .field("server", &self.connection.server())
            .field("name", &self.name)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}
