//! Decisions of a shared store, and those in memory before it: from leases, and of known refusals.

use std::error::Error;
use std::future::poll_fn;
use std::hint::black_box;
use std::time::Duration;

use tokio::runtime::Builder;
use tower::{Layer, Service};
use tower_quota_core::{Charge, Decision, Key, MemoryStore, Name, Quota, RefusalCache, Store};
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;
use tower_quota_testkit::{ManualClock, ModelStore, RedisServer, SharedStore};

use crate::layer::contenders::{Treatment, tower_quota_over};
use crate::layer::service::{Trivial, request};
use crate::timing::Step;

/// Returns admitted requests of the layer over a Redis of its own, one after the other on one thread.
pub(crate) fn through_redis() -> Result<Step, Box<dyn Error>> {
    let (server, runtime) = (
        RedisServer::start(),
        Builder::new_current_thread().enable_all().build()?,
    );
    // In valgrind everything takes longer.
    let options = RedisStore::options().deadline(Duration::from_secs(5));
    let store = runtime.block_on(options.connect(&server.url()))?;
    let mut service = tower_quota_over(store, Treatment::Plain, 1).layer(Trivial);
    Ok(Box::new(move || {
        let _runs_meanwhile = &server;
        let response = runtime.block_on(async {
            poll_fn(|context| service.poll_ready(context)).await?;
            service.call(request()).await
        });
        black_box(response.is_ok_and(|response| response.status().is_success()));
    }))
}

/// Returns the requests of one client of this quota a second, which is leased.
pub(crate) fn leased(units: u64) -> Result<Step, Box<dyn Error>> {
    let store = Leased::new(SharedStore(MemoryStore::new()));
    asking(store, Quota::try_new(units, Duration::from_secs(1))?)
}

/// Returns the requests of one client far beyond its quota.
pub(crate) fn refused() -> Result<Step, Box<dyn Error>> {
    let hour = Duration::from_secs(3_600);
    asking(
        RefusalCache::new(SharedStore(ModelStore::with_clock(ManualClock::default())))
            .max_age(hour),
        Quota::try_new(1, hour)?,
    )
}

fn asking(store: impl Store, quota: Quota) -> Result<Step, Box<dyn Error>> {
    // Leases are fetched in a thread of its own.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    Ok(Box::new(move || {
        let _entered = runtime.enter();
        let key = Key::number(Name::new("client"), 7);
        let charges = [Charge::new("requests", &quota, &key)];
        let mut decision = Decision::default();
        if !store.check_at_once(&charges, &mut decision) {
            _ = runtime.block_on(store.check(&charges));
        }
        black_box(decision);
    }))
}
