//! Implements `Store` over redb, an embedded database. The counters survive a restart of the process.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example custom_store
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port. Set `COUNTERS`
//! to choose another file.
//!
//! Start from the example if your database can load, decide and save in one transaction. Test your store with the
//! conformance suite and the differential test of `tower-quota-testkit`, as the tests of the example do.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     redb = "2.6"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "time"] }

#![allow(
    clippy::result_large_err,
    reason = "an error of redb is large, and rare"
)]

use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, routing::get};
use redb::{Database, Durability, ReadableTable, Table, TableDefinition};
use tower_quota::{
    Decision, Limit, Policy, Quota, RateLimitLayer, Store, key,
    store::{Charge, Clock, Entry, MonotonicClock, Operation, Timestamp, decide},
};

/// The entries of all keys, by the hash of the key.
const ENTRIES: TableDefinition<'_, u128, &[u8]> = TableDefinition::new("entries");
/// The seed of the hash. Replace with 16 random bytes, because a client who knows the seed can find keys that share a
/// counter.
const SEED: [u8; 16] = *b"custom-store-001";

/// A store with counters in a file.
#[derive(Clone)]
pub(crate) struct RedbStore {
    database: Arc<Database>,
    clock: Arc<dyn Clock>,
}

impl RedbStore {
    /// Opens the file, or creates a new file.
    ///
    /// # Errors
    /// Returns an error if redb cannot open the file.
    pub(crate) fn open(path: impl AsRef<Path>, clock: impl Clock) -> Result<Self, redb::Error> {
        let store = Self {
            database: Arc::new(Database::create(path)?),
            clock: Arc::new(clock),
        };
        store.flush()?;
        Ok(store)
    }

    /// Deletes the entries without used units, and writes all entries to the disk.
    ///
    /// # Errors
    /// Returns an error if redb cannot write the file.
    pub(crate) fn flush(&self) -> Result<(), redb::Error> {
        let now = self.clock.now();
        let transaction = self.database.begin_write()?;
        let is_used = |bytes: &[u8]| Entry::decode(bytes).is_ok_and(|entry| entry.full_at() > now);
        transaction
            .open_table(ENTRIES)?
            .retain(|_, bytes| is_used(bytes))?;
        transaction.commit()?;
        Ok(())
    }

    /// Loads, decides and saves in one transaction.
    fn decide(
        &self,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Decision, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        // Do not sync here, because a sync takes milliseconds. `flush` syncs many decisions at once.
        transaction.set_durability(Durability::None);
        let decision = decide_in(
            &mut transaction.open_table(ENTRIES)?,
            operation,
            charges,
            self.clock.now(),
        )?;
        transaction.commit()?;
        Ok(decision)
    }
}

fn decide_in(
    table: &mut Table<'_, u128, &'static [u8]>,
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
) -> Result<Decision, redb::Error> {
    let mut hashes: Vec<u128> = charges
        .iter()
        .map(|charge| charge.key().digest(&SEED))
        .collect();
    let hash_of_charge = hashes.clone();
    hashes.sort_unstable();
    hashes.dedup();

    let before = hashes
        .iter()
        .map(|hash| load(table, *hash))
        .collect::<Result<Vec<Entry>, _>>()?;
    let mut after = before.clone();
    let mut entries: Vec<&mut Entry> = after.iter_mut().collect();
    let entry_of = |charge: usize| {
        hashes
            .binary_search(&hash_of_charge[charge])
            .unwrap_or_default()
    };
    let decision = decide(operation, charges, now, &mut entries, entry_of);

    for ((hash, before), after) in hashes.iter().zip(&before).zip(&after) {
        if after.is_empty() {
            table.remove(hash)?;
        } else if after != before {
            table.insert(hash, after.encode().as_slice())?;
        }
    }
    Ok(decision)
}

fn load(table: &Table<'_, u128, &'static [u8]>, hash: u128) -> Result<Entry, redb::Error> {
    match table.get(hash)? {
        // A missing entry means that no units are used.
        None => Ok(Entry::default()),
        Some(bytes) => {
            Entry::decode(bytes.value()).map_err(|error| redb::Error::Corrupted(error.to_string()))
        }
    }
}

impl Store for RedbStore {
    type Error = redb::Error;
    type Future = Ready<Result<Decision, redb::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        ready(self.decide(operation, charges))
    }

    /// Returns `false`, because no other process opens the file. The layer then caches no refusals.
    fn is_shared(&self) -> bool {
        false
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let path = std::env::var("COUNTERS").unwrap_or_else(|_| "counters.redb".into());
    let store = RedbStore::open(&path, MonotonicClock::new()).map_err(io::Error::other)?;

    // A crash loses at most the decisions since the last flush.
    let flushed = store.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        loop {
            ticks.tick().await;
            let store = flushed.clone();
            if let Ok(Err(error)) = tokio::task::spawn_blocking(move || store.flush()).await {
                eprintln!("the counters are not on the disk: {error}");
            }
        }
    });

    let policy = Policy::new().limit(Limit::new("hour", Quota::per_hour(5)).by(key::client_ip()));
    let app = Router::new()
        .route("/", get(async || "hello\n"))
        .layer(RateLimitLayer::new(store, policy));

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each client: 5 an hour, also after a restart: the counters are in {path}");
    println!("try:  for i in 1 2 3 4 5 6; do curl -i http://{address}/; done");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
