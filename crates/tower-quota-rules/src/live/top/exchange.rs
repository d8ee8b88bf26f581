//! The figures of all instances in Redis.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use redis::Script;
use tokio::sync::Mutex;
use tower_quota::TopWindow;

use super::merge::{MergedTop, merge};
use super::published::Published;
use crate::live::store::{Connection, RuleStoreError, check_name, invalid_url};
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
/// let top = SharedTop::redis("redis://127.0.0.1:6379", "api")?;
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
    connection: Connection,
    script: Script,
    key: String,
    /// The name of this instance: another one after each start.
    instance: String,
    known: Mutex<ReadFigures>,
}

/// The figures of all instances, as they were read last.
#[derive(Default)]
struct ReadFigures {
    figures: Option<(Instant, Vec<(Duration, Published)>)>,
    /// The last attempt to read them. While Redis does not answer, not every question waits for its deadline.
    tried: Option<Instant>,
}

impl SharedTop {
    /// Uses the server at a URL such as `redis://user:password@host:6379/0`. No connection is made yet.
    ///
    /// Instances with the same name share their figures: 1 to 64 letters, digits or characters of `-_.`. They must have
    /// the same [key seed](super::super::LiveOptions::key_seed), since clients are the same by their hashes.
    ///
    /// # Errors
    /// [`RuleStoreError::Unreadable`] for an invalid URL or name.
    pub fn redis(url: &str, name: &str) -> Result<Self, RuleStoreError> {
        Self::with(Connection::to_server(url).map_err(invalid_url)?, name)
    }

    /// Uses the cluster that the nodes at these URLs belong to. No connection is made yet.
    ///
    /// # Errors
    /// As [`redis`](Self::redis).
    pub fn cluster(nodes: &[&str], name: &str) -> Result<Self, RuleStoreError> {
        Self::with(Connection::to_cluster(nodes).map_err(invalid_url)?, name)
    }

    /// Sets how often the figures are published, and how long they are shown before they are read again.
    ///
    /// It is 5 s by default, and at least 100 ms. Figures are forgotten after three intervals.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(Duration::from_millis(100));
        self
    }

    fn with(connection: Connection, name: &str) -> Result<Self, RuleStoreError> {
        check_name(name)?;
        let exchange = Exchange {
            connection,
            script: Script::new(include_str!("top.lua")),
            key: format!("quota:top:{{{name}}}"),
            instance: format!("{:016x}", fastrand::u64(..)),
            known: Mutex::default(),
        };
        Ok(Self { exchange: Arc::new(exchange), every: Duration::from_secs(5) })
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
        if known.tried.is_none_or(|tried| tried.elapsed() >= self.every) {
            match self.call(&own(), "read").await {
                Ok(figures) => known.figures = Some((now(), figures)),
                Err(error) => tracing::debug!(%error, "the top clients of other instances are not known"),
            }
            known.tried = Some(now());
        }
        let (read, figures) = known.figures.as_ref()?;
        let since = read.elapsed();
        let clients =
            merge(figures.iter().map(|(age, published)| (published.list(is_busy, window), age.saturating_add(since))));
        let oldest = figures.iter().map(|(age, _)| *age).max().unwrap_or_default();
        Some(MergedTop { clients, instances: figures.len(), age: oldest.saturating_add(since) })
    }

    async fn call(&self, own: &Published, read: &str) -> Result<Vec<(Duration, Published)>, RuleStoreError> {
        let exchange = &self.exchange;
        let unreadable = |error: serde_json::Error| RuleStoreError::unreadable(exchange.connection.name(), error);
        let figures = serde_json::to_string(own).map_err(unreadable)?;
        let longest = u64::try_from((3 * self.every).as_millis()).unwrap_or(u64::MAX);
        let mut call = exchange.script.prepare_invoke();
        call.key(&exchange.key).arg(&exchange.instance).arg(figures).arg(longest).arg(read);
        let answer: Vec<(u64, String)> = exchange.connection.invoke(&call).await?;
        // Figures that a later version of the program wrote do not make the others void.
        let read = |(age, text): (u64, String)| Some((Duration::from_millis(age), serde_json::from_str(&text).ok()?));
        Ok(answer.into_iter().filter_map(read).collect())
    }
}

impl fmt::Debug for SharedTop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTop")
            .field("server", &self.exchange.connection.name())
            .field("key", &self.exchange.key)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}
