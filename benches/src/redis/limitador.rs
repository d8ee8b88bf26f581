//! limitador with its Redis storage, as its server uses it: counters are read in one command and updated in a pipeline of
//! one script call per limit.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use limitador::AsyncRateLimiter;
use limitador::limit::{Context, Limit};
use limitador::storage::redis::AsyncRedisStorage;

use super::contenders::{PERIODS, RATES};

/// The limits of each number of limits: what limitador calls a namespace.
const NAMESPACES: [(&str, usize); 2] = [("one", 1), ("three", 3)];

pub(super) async fn prepare(url: &str) -> Result<Arc<AsyncRateLimiter>, Box<dyn Error>> {
    let limiter = AsyncRateLimiter::new_with_storage(Box::new(AsyncRedisStorage::new(url).await?));
    for (namespace, limits) in NAMESPACES {
        for (rate, period) in RATES.into_iter().zip(PERIODS).take(limits) {
            limiter.add_limit(Limit::new(namespace, rate, period / 1_000_000, vec![], vec!["user".try_into()?]));
        }
    }
    Ok(Arc::new(limiter))
}

pub(super) async fn decide(limiter: Arc<AsyncRateLimiter>, limits: usize, key: u64) {
    let namespace = if limits == 1 { "one" } else { "three" };
    let context = Context::from(HashMap::from([("user".to_owned(), format!("{key:016}"))]));
    if let Err(error) = limiter.check_rate_limited_and_update(&namespace.into(), &context, 1).await {
        eprintln!("limitador: {error}");
    }
}
