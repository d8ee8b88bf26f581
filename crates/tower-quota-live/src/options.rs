use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use tower_quota::Policy;
#[cfg(feature = "redis")]
use tower_quota_redis::RedisStore;
use tower_quota_rules::{Document, Problems, Rules};

use super::store::BlockStore;
#[cfg(feature = "redis")]
use super::store::RuleStoreError;
#[cfg(feature = "redis")]
use super::top::SharedTop;

type ReadDocument = dyn Fn(&str) -> Result<Rules, Problems> + Send + Sync;

type OnDocument = dyn Fn(&Document) + Send + Sync;

type WithPolicy = dyn Fn(Policy) -> Policy + Send + Sync;

/// The answer to requests until the first rules are in force.
///
/// A [local copy](LiveOptions::local_copy) counts as rules. Your additions by
/// [`LiveOptions::with_policy`], such as skipped health checks, always apply.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WithoutRules {
    /// Every request gets status 503, or `UNAVAILABLE` for gRPC.
    Refuse,
    /// These limits apply, and known blocks.
    Fallback(Rules),
}

/// Options of [`LiveRules`](super::LiveRules).
#[derive(Clone)]
#[must_use]
pub struct LiveOptions {
    pub(crate) poll: Duration,
    pub(crate) start: Duration,
    pub(crate) without_rules: Option<WithoutRules>,
    pub(crate) local_copy: Option<PathBuf>,
    pub(crate) blocks: Option<Arc<dyn BlockStore>>,
    pub(crate) key_seed: Option<[u8; 16]>,
    pub(crate) readable_keys: bool,
    pub(crate) reader: Arc<ReadDocument>,
    pub(crate) with_policy: Arc<WithPolicy>,
    pub(crate) on_document: Arc<OnDocument>,
    #[cfg(feature = "redis")]
    pub(crate) shared_top: Option<SharedTop>,
}

impl LiveOptions {
    /// Creates the default options, with a poll every 10 s and no local copy.
    pub fn new() -> Self {
        Self {
            poll: Duration::from_secs(10),
            start: Duration::from_secs(10),
            without_rules: None,
            local_copy: None,
            blocks: None,
            key_seed: None,
            readable_keys: false,
            reader: Arc::new(Rules::parse),
            with_policy: Arc::new(|policy| policy),
            on_document: Arc::new(|_| {}),
            #[cfg(feature = "redis")]
            shared_top: None,
        }
    }

    /// Creates options for a service with these counters, so that you name the service in one place.
    ///
    /// Instances [share](Self::shared_top) their top clients under the prefix of the counters, and hash keys with
    /// [a seed](Self::key_seed) from the prefix and the secret of the counters. Services with different prefixes then show
    /// different hashes of a key. Blocks from an earlier seed do not match. Without a secret of the counters, the prefix
    /// is enough to compute the hashes, also in your logs. Call [`key_seed`](Self::key_seed) to keep them secret.
    ///
    /// ```no_run
    /// use tower_quota_live::{LiveOptions, RedisRules};
    /// use tower_quota_redis::RedisStore;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let counters = RedisStore::options().prefix("orders").connect("redis://127.0.0.1:6379").await?;
    /// let (rules, options) = (RedisRules::from_store(&counters)?, LiveOptions::from_store(&counters)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`RedisRules::from_store`](crate::RedisRules::from_store).
    #[cfg(feature = "redis")]
    pub fn from_store(counters: &RedisStore) -> Result<Self, RuleStoreError> {
        let top = SharedTop::from_store(counters)?;
        Ok(Self::new().shared_top(top).key_seed(counters.key_seed()))
    }

    /// Sets how often the store is read without an announcement. The default is 10 s, the minimum
    /// 10 ms.
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(10));
        self
    }

    /// Sets how long the start waits for the first document. The default is 10 s.
    ///
    /// Reading a document of several megabytes takes seconds. `RedisRules` has its own deadline of
    /// 2 s.
    pub const fn start_deadline(mut self, deadline: Duration) -> Self {
        self.start = deadline;
        self
    }

    /// Chooses the answer to requests until the first rules are in force.
    ///
    /// By default, the [start](super::LiveRules::start) fails without rules.
    ///
    /// ```
    /// use tower_quota_live::{LiveOptions, WithoutRules};
    /// use tower_quota_rules::Rules;
    ///
    /// let limits = Rules::parse("limits: [{ name: client, quota: 100/minute, key: client_ip }]")?;
    /// let options = LiveOptions::new().without_rules(WithoutRules::Fallback(limits));
    /// # Ok::<_, tower_quota_rules::Problems>(())
    /// ```
    pub fn without_rules(mut self, choice: WithoutRules) -> Self {
        self.without_rules = Some(choice);
        self
    }

    /// Keeps a copy of the last valid document and of the blocks in this file, for a restart during
    /// an outage.
    ///
    /// The copy contains the unchanged text of the document. Give every instance its own file.
    pub fn local_copy(mut self, path: impl Into<PathBuf>) -> Self {
        self.local_copy = Some(path.into());
        self
    }

    /// Keeps blocks, overrides and audit records in this store, for all instances that use it.
    ///
    /// By default they live in the store of the documents, or in the memory of this instance if that
    /// store keeps documents only, such as a file. During an outage of your store, documents still
    /// follow their store, known blocks stay in force, and the instance is unhealthy.
    ///
    /// ```no_run
    /// # #[cfg(feature = "redis")]
    /// # fn example() -> Result<(), tower_quota_live::RuleStoreError> {
    /// use tower_quota_live::{LiveOptions, RedisRules};
    ///
    /// let blocks = RedisRules::new("redis://127.0.0.1:6379", "orders")?;
    /// let options = LiveOptions::new().blocks_in(blocks);
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocks_in(mut self, store: impl BlockStore) -> Self {
        self.blocks = Some(Arc::new(store));
        self
    }

    /// Sets the secret for hashes of keys in stores, lists and logs.
    ///
    /// Use the same secret on all instances. It replaces a seed that you passed to
    /// [`trace_store_calls`](tower_quota::RateLimitLayer::trace_store_calls), so that your logs have the hashes of the admin
    /// API. A new secret ends the blocks and overrides of keys.
    ///
    /// Without a secret, live rules hash keys with a public constant. A reader of the store can then test keys against your
    /// blocks. Events and spans have the same hashes, unless you passed a seed to `trace_store_calls`.
    pub const fn key_seed(mut self, seed: [u8; 16]) -> Self {
        self.key_seed = Some(seed);
        self
    }

    /// Stores and shows the keys of blocks next to their hashes.
    pub const fn readable_keys(mut self) -> Self {
        self.readable_keys = true;
        self
    }

    /// Shares the clients with most requests between instances. Off by default.
    ///
    /// With [`readable_keys`](Self::readable_keys), instances share keys, otherwise only hashes.
    #[cfg(feature = "redis")]
    pub fn shared_top(mut self, top: SharedTop) -> Self {
        self.shared_top = Some(top);
        self
    }

    /// Reads documents by this function instead of [`Rules::parse`], for parts from your code.
    pub fn read_with(
        mut self,
        reader: impl Fn(&str) -> Result<Rules, Problems> + Send + Sync + 'static,
    ) -> Self {
        self.reader = Arc::new(reader);
        self
    }

    /// Changes every compiled policy, for look-ups, conditions and limits from your code.
    ///
    /// The function must not panic. Give your limits names that no document uses.
    pub fn with_policy(
        mut self,
        change: impl Fn(Policy) -> Policy + Send + Sync + 'static,
    ) -> Self {
        self.with_policy = Arc::new(change);
        self
    }

    /// Calls this function with every new document, before the layer uses the policy.
    ///
    /// For example, pass the [regions](Document::regions) to a `Regional` store. The function must
    /// not panic.
    pub fn on_document(mut self, apply: impl Fn(&Document) + Send + Sync + 'static) -> Self {
        self.on_document = Arc::new(apply);
        self
    }
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LiveOptions {
    /// Hides the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveOptions")
            .field("poll", &self.poll)
            .field("local_copy", &self.local_copy)
            .field("readable_keys", &self.readable_keys)
            .finish_non_exhaustive()
    }
}
