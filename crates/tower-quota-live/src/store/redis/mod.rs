//! Keeps rules in Redis, shared by all instances.
//!
//! ```text
//! quota:rules:{NAME}:state      hash: revision, began, marked_since, latest, current, restored, file
//! quota:rules:{NAME}:versions   hash: number -> author, comment, time, bytes, hash (JSON)
//! quota:rules:{NAME}:texts      hash: number -> the document
//! quota:rules:{NAME}:blocks     hash: id -> block (JSON)
//! quota:rules:{NAME}:ends       sorted set: id by the instant at which the block ends
//! quota:rules:{NAME}:revisions  sorted set: id by the revision at which the block was put or removed
//! quota:rules:{NAME}:penalties  sorted set: id of the block of a penalty by the instant at which the block ends
//! quota:rules:{NAME}:audit      list: the latest records (JSON)
//! quota:rules:{NAME}:changed    channel: the revision, at every change
//! ```
//!
//! The keys share a hash tag, hence a slot of a cluster. A change is a single script call, so it is
//! atomic. The keys do not expire, so `volatile` eviction policies keep them.

mod announce;
mod connection;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, FromRedisValue, RedisResult, Script, ScriptInvocation, Value};
use tokio::sync::watch;
use tower_quota_redis::{RedisConfigError, RedisLocator, RedisStore};

use self::announce::Announcements;
pub(crate) use self::connection::RedisConnection;
use super::{
    BlockChanges, BlockStore, KEPT_RECORDS, KEPT_VERSIONS, MOST_BLOCKS, MOST_PENALTY_BLOCKS, Reply,
    RuleStore, RuleStoreError, StoreState,
};
use crate::audit::{Action, AuditRecord};
use crate::blocks::Block;
use crate::time::Time;
use crate::version::{NewVersion, Version, VersionInfo};

/// The maximum number of blocks in a call, to keep calls below a millisecond in Redis.
const PAGE: usize = 250;

/// A [`RuleStore`] in Redis, shared by all instances.
///
/// Connections open on demand, and reconnect. Calls end within [`DEADLINE`](Self::DEADLINE).
/// Instances announce changes by Pub/Sub.
pub struct RedisRules {
    connection: RedisConnection,
    script: Script,
    keys: RedisKeys,
    announcements: Announcements,
}

struct RedisKeys {
    script: [String; 7],
    audit: String,
    channel: String,
    name: String,
}

impl RedisRules {
    /// The deadline of a call, connecting included.
    pub const DEADLINE: Duration = Duration::from_secs(2);

    /// Uses the servers at a URL of [`RedisStore::connect`], and connects on demand.
    ///
    /// Instances with the same name share their rules. A name has 1 to 64 letters, digits or
    /// characters of `-_.`. Call this on a tokio runtime, for the listener of announcements.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Config`] for an invalid URL or name.
    pub fn new(url: &str, name: &str) -> Result<Self, RuleStoreError> {
        Self::with(RedisLocator::new(url), name)
    }

    /// Uses the servers and certificates of your counters, on a separate connection.
    ///
    /// The prefix of the counters is the name of the rules, so you name your service in one place.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new), an error for counters with the default prefix, and an error for a
    /// store on a pool, whose server is unknown.
    pub fn from_store(counters: &RedisStore) -> Result<Self, RuleStoreError> {
        Self::with(counters.locator(), name_of_service(counters)?)
    }

    fn with(
        locator: Result<RedisLocator, RedisConfigError>,
        name: &str,
    ) -> Result<Self, RuleStoreError> {
        let locator = locator.map_err(RuleStoreError::config)?;
        check_name(name)?;
        let key = |part: &str| format!("quota:rules:{{{name}}}:{part}");
        let keys = RedisKeys {
            script: [
                "state",
                "versions",
                "texts",
                "blocks",
                "ends",
                "revisions",
                "penalties",
            ]
            .map(key),
            audit: key("audit"),
            channel: key("changed"),
            name: name.to_owned(),
        };
        let connection = RedisConnection::new(locator, &keys.channel, Self::DEADLINE);
        let announcements = Announcements::listen(connection.clone(), keys.channel.clone());
        Ok(Self {
            connection,
            script: Script::new(include_str!("rules.lua")),
            keys,
            announcements,
        })
    }

    fn operation(&self, operation: &str) -> ScriptInvocation<'_> {
        let mut invocation = self.script.prepare_invoke();
        for key in &self.keys.script {
            invocation.key(key);
        }
        invocation.key(&self.keys.audit);
        invocation.arg(operation).arg(&self.keys.channel);
        invocation
    }

    async fn call<T, F>(
        &self,
        call: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, RuleStoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        self.connection
            .call(call)
            .await
            .map_err(|error| RuleStoreError::unavailable(self.name(), error))
    }

    /// Runs the script. Without a change of the state, the answer is empty.
    async fn run<T: FromRedisValue>(
        &self,
        invocation: &ScriptInvocation<'_>,
    ) -> Result<Option<T>, RuleStoreError> {
        let (word, value): (String, Value) = self
            .call(async |mut redis| invocation.invoke_async(&mut redis).await)
            .await?;
        match word.as_str() {
            "ok" => self.read(value).map(Some),
            "same" => Ok(None),
            "full" => Err(RuleStoreError::TooManyBlocks),
            "conflict" => Err(RuleStoreError::Conflict {
                current: self.read(value)?,
            }),
            _ => Err(self.unreadable(format_args!("unexpected answer {word:?}"))),
        }
    }

    fn unreadable(&self, reason: impl fmt::Display) -> RuleStoreError {
        RuleStoreError::unreadable(self.name(), reason)
    }

    fn read<T: FromRedisValue>(&self, value: Value) -> Result<T, RuleStoreError> {
        T::from_redis_value(value).map_err(|error| self.unreadable(error))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, RuleStoreError> {
        serde_json::from_str(text).map_err(|error| self.unreadable(error))
    }

    fn to_json(&self, value: &impl serde::Serialize) -> Result<String, RuleStoreError> {
        serde_json::to_string(value).map_err(|error| self.unreadable(error))
    }

    fn add_block(
        &self,
        call: &mut ScriptInvocation<'_>,
        block: &Block,
    ) -> Result<(), RuleStoreError> {
        call.arg(&block.id)
            .arg(block.until.unix_millis())
            .arg(u8::from(block.is_of_penalty()))
            .arg(self.to_json(block)?);
        Ok(())
    }

    async fn change_block(
        &self,
        change: &ScriptInvocation<'_>,
    ) -> Result<Option<Block>, RuleStoreError> {
        let before: Option<Option<String>> = self.run(change).await?;
        before.flatten().map(|text| self.json(&text)).transpose()
    }

    /// Reads the state with the first block changes after a revision, and whether there are more.
    async fn page(
        &self,
        known: Option<u64>,
        is_next: bool,
    ) -> Result<Option<(StoreState, bool)>, RuleStoreError> {
        let known = known.map(|known| known.to_string()).unwrap_or_default();
        let mut call = self.operation("state");
        call.arg(known).arg(u8::from(is_next)).arg(PAGE);
        let Some((numbers, is_complete, has_more, ids, stored)) = self.run::<Page>(&call).await?
        else {
            return Ok(None);
        };
        let (revision, began, current) = numbers;
        // Skip blocks from a later version of the program.
        let block = |text: Option<String>| text.and_then(|text| self.json::<Block>(&text).ok());
        let changed = ids.into_iter().zip(stored.into_iter().map(block));
        let state = StoreState {
            revision,
            began,
            current,
            blocks: BlockChanges {
                is_complete,
                changed: changed.collect(),
            },
            ..StoreState::default()
        };
        Ok(Some((state, has_more)))
    }
}

/// The numbers of the state, whether the page has all blocks, whether another page follows, and the
/// ids of changed blocks with the remaining blocks.
type Page = (
    (u64, u64, Option<u64>),
    bool,
    bool,
    Vec<String>,
    Vec<Option<String>>,
);

/// Returns the prefix of counters, unless it is the default, which many services have.
pub(crate) fn name_of_service(counters: &RedisStore) -> Result<&str, RuleStoreError> {
    match counters.prefix() {
        "quota" => Err(RuleStoreError::config(
            "the counters have the default prefix \"quota\", which other services may have too: name your service, as in \
             `RedisStore::options().prefix(\"orders\")`",
        )),
        name => Ok(name),
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), RuleStoreError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_allowed) {
        let reason = format!(
            "{name:?} is not a name: give 1 to 64 letters, digits or characters of \"-_.\""
        );
        return Err(RuleStoreError::config(reason));
    }
    Ok(())
}

impl RuleStore for RedisRules {
    fn name(&self) -> String {
        format!("redis at {}", self.connection.server())
    }

    fn identity(&self) -> String {
        format!("{}, rules {}", self.name(), self.keys.name)
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        Box::pin(async move {
            // Read everything after a lost subscription, because the server may be another one with
            // another history. Other readers, which know no revision, leave the sign to live rules.
            let is_doubtful = known.is_some() && self.announcements.was_lost();
            let first = self.page(known.filter(|_| !is_doubtful), false).await;
            if is_doubtful && first.is_err() {
                self.announcements.lose();
            }
            let Some((mut state, mut has_more)) = first? else {
                return Ok(None);
            };
            while has_more {
                let Some((next, more)) = self.page(Some(state.revision), true).await? else {
                    break;
                };
                // If a block changes meanwhile, a later page contains the block again.
                let mut changed = state.blocks.changed;
                changed.extend(next.blocks.changed);
                let blocks = BlockChanges {
                    changed,
                    ..state.blocks
                };
                (state, has_more) = (StoreState { blocks, ..next }, more);
            }
            state.is_doubtful = is_doubtful;
            Ok(Some(state))
        })
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        Box::pin(async move {
            let mut both = redis::pipe();
            both.atomic()
                .hget(&self.keys.script[1], number)
                .hget(&self.keys.script[2], number);
            let (info, text): (Option<String>, Option<String>) = self
                .call(async |mut redis| both.query_async(&mut redis).await)
                .await?;
            let (Some(info), Some(text)) = (info, text) else {
                return Ok(None);
            };
            let info: VersionInfo = self.json(&info)?;
            Ok(Some(Version {
                number,
                author: info.author,
                comment: info.comment,
                time: info.time,
                text,
                hash: info.hash,
            }))
        })
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        Box::pin(async move {
            let infos: Vec<(u64, String)> = self
                .call(async |mut redis| redis.hgetall(&self.keys.script[1]).await)
                .await?;
            let mut versions = Vec::with_capacity(infos.len());
            for (number, info) in infos {
                let info: VersionInfo = self.json(&info)?;
                versions.push(VersionInfo { number, ..info });
            }
            versions.sort_unstable_by_key(|version| core::cmp::Reverse(version.number));
            versions.truncate(most);
            Ok(versions)
        })
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version> {
        Box::pin(async move {
            let above = new.above;
            let version = Version::new(0, new);
            let mut put = self.operation("put");
            put.arg(
                expected
                    .map(|expected| expected.to_string())
                    .unwrap_or_default(),
            )
            .arg(above)
            .arg(KEPT_VERSIONS)
            .arg(self.to_json(&version.info())?)
            .arg(&version.text);
            let number: Option<u64> = self.run(&put).await?;
            let number = number.ok_or_else(|| self.unreadable("a version has no number"))?;
            Ok(Version { number, ..version })
        })
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.announcements.changes()
    }

    fn restore<'a>(&'a self, version: &'a Version, known: u64) -> Reply<'a, bool> {
        Box::pin(async move {
            let mut restore = self.operation("restore");
            restore
                .arg(version.number)
                .arg(known)
                .arg(self.to_json(&version.info())?)
                .arg(&version.text);
            Ok(self.run::<()>(&restore).await?.is_some())
        })
    }

    fn blocks(self: Arc<Self>) -> Option<Arc<dyn BlockStore>> {
        Some(self)
    }
}

impl BlockStore for RedisRules {
    fn shares_blocks(&self) -> bool {
        true
    }

    fn restore_blocks<'a>(&'a self, known: u64, lost: &'a BlockChanges) -> Reply<'a, Vec<String>> {
        Box::pin(async move {
            let lost: Vec<_> = lost.changed.iter().collect();
            let mut restored = Vec::new();
            for page in lost.chunks(PAGE) {
                let mut restore = self.operation("restore_blocks");
                restore.arg(known).arg(MOST_BLOCKS);
                for (id, block) in page {
                    match block {
                        Some(block) => self.add_block(&mut restore, block)?,
                        None => _ = restore.arg(id).arg("").arg("").arg(""),
                    }
                }
                let ids: Option<Vec<String>> = self.run(&restore).await?;
                restored.extend(ids.unwrap_or_default());
            }
            Ok(restored)
        })
    }

    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>> {
        Box::pin(async move {
            let mut put = self.operation("put_block");
            self.add_block(&mut put, &block)?;
            put.arg(Time::now().unix_millis())
                .arg(MOST_BLOCKS)
                .arg(MOST_PENALTY_BLOCKS);
            self.change_block(&put).await
        })
    }

    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>> {
        Box::pin(async move {
            let mut remove = self.operation("remove_block");
            remove.arg(id).arg(MOST_BLOCKS);
            self.change_block(&remove).await
        })
    }

    fn record(&self, record: AuditRecord) -> Reply<'_, ()> {
        Box::pin(async move {
            let mut once = self.operation("record");
            once.arg(self.to_json(&record)?).arg(KEPT_RECORDS);
            if record.what == Action::File {
                once.arg(record.after);
            }
            self.run::<()>(&once).await.map(drop)
        })
    }

    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>> {
        Box::pin(async move {
            let Some(last) = most.min(KEPT_RECORDS).checked_sub(1) else {
                return Ok(Vec::new());
            };
            let last = isize::try_from(last).unwrap_or(isize::MAX);
            let records: Vec<String> = self
                .call(async |mut redis| redis.lrange(&self.keys.audit, 0, last).await)
                .await?;
            records.iter().map(|record| self.json(record)).collect()
        })
    }
}

impl fmt::Debug for RedisRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRules")
            .field("server", &self.name())
            .field("state", &self.keys.script[0])
            .finish()
    }
}
