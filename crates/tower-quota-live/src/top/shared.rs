//! The figures of all instances in Redis.

use core::time::Duration;
use std::sync::Arc;

use tower_quota::{TopClient, TopWindow};
use tower_quota_redis::{RedisConfigError, RedisConnection, RedisStore};

use super::list::{ListedClient, TopList};
use crate::store::{RedisRules, RuleStoreError, check_name};
use crate::time::Time;

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
/// use tower_quota_live::{LiveOptions, SharedTop};
///
/// # fn options() -> Result<LiveOptions, Box<dyn std::error::Error>> {
/// let top = SharedTop::new("redis://127.0.0.1:6379", "api")?;
/// Ok(LiveOptions::new().shared_top(top))
/// # }
/// # assert!(options().is_ok());
/// ```
#[derive(Clone, Debug)]
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

    fn key(&self, part: &str) -> String {
        format!("quota:top:{{{}}}:{part}", self.name)
    }

    fn list(&self, is_busy: bool, window: TopWindow, instance: &str) -> String {
        let list = if is_busy { "busy" } else { "limited" };
        let window = match window {
            TopWindow::Minute => "1m",
            TopWindow::TenMinutes => "10m",
            _ => "1h",
        };
        self.key(&format!("{list}:{window}:{instance}"))
    }

    fn expiry(&self) -> i64 {
        i64::try_from((3 * self.every).as_millis()).unwrap_or(i64::MAX)
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
                let list = self.list(is_busy, window, &self.instance);
                pipe.del(&list).zadd(&list, INSTANCE, 1);
                for client in top(is_busy, window).into_iter().take(PUBLISHED) {
                    let at_least = client.at_least;
                    let key = client
                        .key
                        .filter(|key| is_readable && key.len() <= LONGEST_KEY);
                    // Members are the same on all instances.
                    let client = ListedClient {
                        key,
                        at_least: 0,
                        at_most: None,
                        retry_after_ms: None,
                        ..client
                    };
                    // Texts and numbers always are JSON.
                    let member = serde_json::to_string(&client).unwrap_or_default();
                    pipe.zadd(&list, member, at_least);
                }
                pipe.pexpire(&list, self.expiry());
            }
        }
        let (now, instances) = (Time::now().unix_millis(), self.key("instances"));
        pipe.zadd(&instances, &*self.instance, now)
            .zrembyscore(&instances, "-inf", now - FORGOTTEN_AFTER)
            .pexpire(&instances, FORGOTTEN_AFTER);
        self.run(pipe.ignore()).await
    }

    /// Returns the sums of all instances. Until an instance has published its figures, it is an error.
    pub(super) async fn sums(
        &self,
        is_busy: bool,
        window: TopWindow,
    ) -> Result<TopList, RuleStoreError> {
        let mut pipe = redis::pipe();
        pipe.zrange(self.key("instances"), 0, -1);
        let (names,): (Vec<String>,) = self.run(&pipe).await?;
        let lists = names.iter().map(|name| self.list(is_busy, window, name));
        let (sum, lists) = (self.list(is_busy, window, "sum"), lists.collect::<Vec<_>>());
        let mut pipe = redis::pipe();
        pipe.atomic()
            .zunionstore(&sum, &lists)
            .ignore()
            .pexpire(&sum, self.expiry())
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
}
