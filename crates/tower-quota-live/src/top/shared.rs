use core::time::Duration;
use std::sync::Arc;

use tower_quota::{TopClient, TopWindow};
use tower_quota_redis::{RedisConfigError, RedisLocator, RedisStore};

use super::list::{ListedClient, TopList};
use crate::store::{RedisConnection, RedisRules, RuleStoreError, check_name, name_of_service};
use crate::time::Time;

const PUBLISHED: usize = 64;
const LONGEST_KEY: usize = 128;
const FORGOTTEN_AFTER: i64 = 3_600_000;
/// The member with a score of 1 from every instance, so that its sum counts the instances.
const INSTANCE: &str = "";

/// Shares the top clients of instances through Redis.
///
/// An instance publishes at most 64 clients per list, by the hashes of their keys, in a single
/// round trip per interval. [`LiveRules::top`](super::super::LiveRules::top) reads the sums. No
/// request waits for Redis.
///
/// Give every layer of a process its own name.
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
    instance: Arc<str>,
    pub(super) every: Duration,
}

impl SharedTop {
    /// Uses the servers at a URL of [`RedisStore::connect`], and connects on demand.
    ///
    /// Instances with the same name share their lists. A name has 1 to 64 letters, digits or
    /// characters of `-_.`. Use the same [key seed](super::super::LiveOptions::key_seed) on all
    /// instances, to get the same hashes.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Config`] for an invalid URL or name.
    pub fn new(url: &str, name: &str) -> Result<Self, RuleStoreError> {
        Self::with(RedisLocator::new(url), name)
    }

    /// Uses the servers and certificates of your counters, on a separate connection. The prefix of the counters is the
    /// name.
    ///
    /// # Errors
    /// See [`RedisRules::from_store`].
    pub fn from_store(counters: &RedisStore) -> Result<Self, RuleStoreError> {
        Self::with(counters.locator(), name_of_service(counters)?)
    }

    /// Sets the interval between publications. The default is 5 s, the minimum 100 ms.
    ///
    /// The lists of an ended instance expire after three intervals.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(Duration::from_millis(100));
        self
    }

    fn with(
        locator: Result<RedisLocator, RedisConfigError>,
        name: &str,
    ) -> Result<Self, RuleStoreError> {
        check_name(name)?;
        let locator = locator.map_err(RuleStoreError::config)?;
        let slot = format!("quota:top:{{{name}}}");
        Ok(Self {
            connection: RedisConnection::new(locator, &slot, RedisRules::DEADLINE),
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
                    // Members must be equal on all instances.
                    let client = ListedClient {
                        key,
                        at_least: 0,
                        at_most: None,
                        retry_after_ms: None,
                        since: None,
                        ..client
                    };
                    // Texts and numbers always serialize.
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

    /// Returns the sums of all instances, or an error before an instance has published.
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
        // Skip members from a later version of the program.
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
