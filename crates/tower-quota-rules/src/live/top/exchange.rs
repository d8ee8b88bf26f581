//! The figures of all instances in Redis.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use redis::Script;
use tokio::sync::Mutex;
use tower_quota::TopWindow;
use tower_quota_redis::{RedisConfigError, RedisConnection, RedisStore};

use super::merge::{MergedTop, merge};
use super::published::Published;
use crate::live::store::{RedisRules, RuleStoreError, check_name};
use crate::live::wait::now;

/// Shares the top clients of an instance with the others, through Redis.
///
/// Each instance publishes its figures once in an interval, in one round trip: at most 64 clients of each list, by the
/// hashes of their keys, with an expiry. [`LiveRules::merged_top_refused`](super::super::LiveRules::merged_top_refused)
/// reads those of all. No request waits for it. While Redis does not answer, the last figures are shown with their age.
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
    exchange: Arc<Exchange>,
    pub(super) every: Duration,
}

struct Exchange {
    connection: RedisConnection,
    script: Script,
    /// The keys of the script, in its order.
    keys: [String; 2],
    /// The name of this instance: another one after each start.
    instance: String,
    known: Mutex<KnownFigures>,
}

/// The figures of all instances, as they were read last.
#[derive(Default)]
struct KnownFigures {
    figures: Option<(Instant, Vec<(Duration, Published)>)>,
    /// The last attempt to read them. While Redis does not answer, not every question waits for its deadline.
    tried: Option<Instant>,
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

    /// Sets how often the figures are published, and how long they are shown before they are read again.
    ///
    /// It is 5 s by default, and at least 100 ms. Figures are forgotten after three intervals.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(Duration::from_millis(100));
        self
    }

    fn with(
        connection: Result<RedisConnection, RedisConfigError>,
        name: &str,
    ) -> Result<Self, RuleStoreError> {
        check_name(name)?;
        let exchange = Exchange {
            connection: connection.map_err(RuleStoreError::config)?,
            script: Script::new(include_str!("top.lua")),
            keys: ["", ":seen"].map(|part| format!("quota:top:{{{name}}}{part}")),
            instance: format!("{:016x}", fastrand::u64(..)),
            known: Mutex::default(),
        };
        Ok(Self {
            exchange: Arc::new(exchange),
            every: Duration::from_secs(5),
        })
    }

    /// Publishes the figures of this instance.
    pub(super) async fn publish(&self, own: &Published) -> Result<(), RuleStoreError> {
        self.call(own, "").await.map(drop)
    }

    /// Returns the clients of a window on all instances; `None` until Redis has answered once.
    ///
    /// `own` makes the figures of this instance, which are published before the others are read.
    pub(super) async fn merged(
        &self,
        is_busy: bool,
        window: TopWindow,
        own: impl FnOnce() -> Published,
    ) -> Option<MergedTop> {
        let mut known = self.exchange.known.lock().await;
        if known
            .tried
            .is_none_or(|tried| tried.elapsed() >= self.every)
        {
            match self.call(&own(), "read").await {
                Ok(figures) => known.figures = Some((now(), figures)),
                Err(error) => {
                    tracing::debug!(%error, "the top clients of other instances are not known")
                }
            }
            known.tried = Some(now());
        }
        let (read, figures) = known.figures.as_ref()?;
        let since = read.elapsed();
        let clients =
            merge(figures.iter().map(|(age, published)| {
                (published.list(is_busy, window), age.saturating_add(since))
            }));
        let oldest = figures
            .iter()
            .map(|(age, _)| *age)
            .max()
            .unwrap_or_default();
        Some(MergedTop {
            clients,
            instances: figures.len(),
            age: oldest.saturating_add(since),
        })
    }

    async fn call(
        &self,
        own: &Published,
        read: &str,
    ) -> Result<Vec<(Duration, Published)>, RuleStoreError> {
        let exchange = &self.exchange;
        let server = exchange.connection.server();
        let unreadable = |error: serde_json::Error| RuleStoreError::unreadable(server, error);
        let figures = serde_json::to_string(own).map_err(unreadable)?;
        let longest = u64::try_from((3 * self.every).as_millis()).unwrap_or(u64::MAX);
        let mut call = exchange.script.prepare_invoke();
        call.key(&exchange.keys[..])
            .arg(&exchange.instance)
            .arg(figures)
            .arg(longest)
            .arg(read);
        let answer = exchange
            .connection
            .call(async |mut redis| call.invoke_async(&mut redis).await)
            .await;
        let answer: Vec<(u64, String)> =
            answer.map_err(|error| RuleStoreError::unavailable(server, error))?;
        // Figures that a later version of the program wrote do not make the others void.
        let read = |(age, text): (u64, String)| {
            Some((
                Duration::from_millis(age),
                serde_json::from_str(&text).ok()?,
            ))
        };
        Ok(answer.into_iter().filter_map(read).collect())
    }
}

impl fmt::Debug for SharedTop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTop")
            .field("server", &self.exchange.connection.server())
            .field("keys", &self.exchange.keys)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}
