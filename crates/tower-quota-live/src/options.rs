//! Options of live rules.

use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use tower_quota::Policy;

use super::shadow::ShadowCounts;
#[cfg(feature = "redis")]
use super::top::SharedTop;
use tower_quota_rules::{Document, Format, Problems, Rules};

/// Reads a document.
type ReadDocument = dyn Fn(&str, Format) -> Result<Rules, Problems> + Send + Sync;

/// Learns of a document that applies from now on.
type OnDocument = dyn Fn(&Document) + Send + Sync;

/// Adds to a policy what only code can say.
type WithPolicy = dyn Fn(Policy) -> Policy + Send + Sync;

/// What the requests of an instance get until its first rules are in force.
///
/// The [local copy](LiveOptions::local_copy) counts as rules. Additions by [`LiveOptions::with_policy`], such as skipped
/// health checks, hold in both cases.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WithoutRules {
    /// Every request gets status 503, or `UNAVAILABLE` for gRPC.
    Refuse,
    /// These limits hold. Blocks hold too, as far as they are known.
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
    pub(crate) key_seed: [u8; 16],
    pub(crate) readable_keys: bool,
    pub(crate) counts: Option<ShadowCounts>,
    pub(crate) reader: Arc<ReadDocument>,
    pub(crate) with_policy: Arc<WithPolicy>,
    pub(crate) on_document: Arc<OnDocument>,
    #[cfg(feature = "redis")]
    pub(crate) shared_top: Option<SharedTop>,
}

impl LiveOptions {
    /// Makes the default options: a poll every 10 s beside the announcements, and no local copy.
    pub fn new() -> Self {
        Self {
            poll: Duration::from_secs(10),
            start: Duration::from_secs(10),
            without_rules: None,
            local_copy: None,
            key_seed: *b"tower-quota keys",
            readable_keys: false,
            counts: None,
            reader: Arc::new(Rules::parse),
            with_policy: Arc::new(|policy| policy),
            on_document: Arc::new(|_| {}),
            #[cfg(feature = "redis")]
            shared_top: None,
        }
    }

    /// Sets how often the store is asked although it announced nothing; 10 s by default, at least 10 ms.
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(10));
        self
    }

    /// Sets how long the start waits for the first document; 10 s by default.
    ///
    /// Reading a document of several megabytes takes seconds. `RedisRules` fails after a deadline of its own, 2 s.
    pub const fn start_deadline(mut self, deadline: Duration) -> Self {
        self.start = deadline;
        self
    }

    /// Chooses what the requests of an instance get until its first rules are in force.
    ///
    /// By default, the [start](super::LiveRules::start) fails without rules.
    ///
    /// ```
    /// use tower_quota_live::{LiveOptions, WithoutRules};
    /// use tower_quota_rules::{Format, Rules};
    ///
    /// let limits = Rules::parse("limits: [{ name: client, quota: 100/minute, key: client_ip }]", Format::Yaml)?;
    /// let options = LiveOptions::new().without_rules(WithoutRules::Fallback(limits));
    /// # Ok::<_, tower_quota_rules::Problems>(())
    /// ```
    pub fn without_rules(mut self, choice: WithoutRules) -> Self {
        self.without_rules = Some(choice);
        self
    }

    /// Keeps a copy of the last good document and of the blocks in this file, for a restart during an outage.
    ///
    /// The copy is written by a rename when the document or the blocks change, and holds the document as it is.
    /// Instances need files of their own.
    pub fn local_copy(mut self, path: impl Into<PathBuf>) -> Self {
        self.local_copy = Some(path.into());
        self
    }

    /// Sets the secret under which keys are hashed where they are stored, shown and logged.
    ///
    /// It must be the same on all instances. The default is no secret: a reader of the store can find out which of a
    /// list of keys are blocked.
    pub const fn key_seed(mut self, seed: [u8; 16]) -> Self {
        self.key_seed = seed;
        self
    }

    /// Stores and shows the keys of blocks beside their hashes.
    pub const fn readable_keys(mut self) -> Self {
        self.readable_keys = true;
        self
    }

    /// Takes the counts that the layer's listener fills, see [`ShadowCounts`].
    pub fn shadow_counts(mut self, counts: ShadowCounts) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Shares the clients with most requests with the other instances. It is off by default.
    ///
    /// With [`readable_keys`](Self::readable_keys) they are shared with their keys, otherwise with hashes alone.
    #[cfg(feature = "redis")]
    pub fn shared_top(mut self, top: SharedTop) -> Self {
        self.shared_top = Some(top);
        self
    }

    /// Reads documents by this function instead of [`Rules::parse`], to give the parts that only code has.
    pub fn read_with(
        mut self,
        reader: impl Fn(&str, Format) -> Result<Rules, Problems> + Send + Sync + 'static,
    ) -> Self {
        self.reader = Arc::new(reader);
        self
    }

    /// Passes each compiled policy through this function, to add parts of the code.
    ///
    /// They are look-ups, conditions and limits. It must not panic: add limits with names that no document uses.
    pub fn with_policy(
        mut self,
        change: impl Fn(Policy) -> Policy + Send + Sync + 'static,
    ) -> Self {
        self.with_policy = Arc::new(change);
        self
    }

    /// Calls this function with each document that applies, before the layer uses the policy of the document.
    ///
    /// Use the function to pass the [regions](Document::regions) to a `Regional` store. The function must not panic.
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
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveOptions")
            .field("poll", &self.poll)
            .field("local_copy", &self.local_copy)
            .field("readable_keys", &self.readable_keys)
            .finish_non_exhaustive()
    }
}
