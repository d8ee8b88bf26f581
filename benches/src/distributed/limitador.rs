//! limitador's cached Redis storage, which counts in memory and writes to Redis in the background.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use limitador::AsyncRateLimiter;
use limitador::limit::{Context, Limit};
use limitador::storage::redis::CachedRedisStorageBuilder;

use super::UNITS;
use super::decide::Decide;

const NAMESPACE: &str = "clients";
/// By default it is a second, which is the length of the window.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

pub(super) async fn connect(url: &str) -> Result<Decide, Box<dyn Error>> {
    let storage = CachedRedisStorageBuilder::new(url)
        .flushing_period(FLUSH_EVERY)
        .build()
        .await?;
    let limiter = Arc::new(AsyncRateLimiter::new_with_storage(Box::new(storage)));
    limiter.add_limit(Limit::new(
        NAMESPACE,
        UNITS.into(),
        1,
        vec![],
        vec!["client".try_into()?],
    ));
    Ok(Box::new(move || {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move {
            let context = Context::from(HashMap::from([("client".to_owned(), "1".to_owned())]));
            let checked = limiter
                .check_rate_limited_and_update(&NAMESPACE.into(), &context, 1)
                .await;
            Some(!checked.ok()?.limited)
        })
    }))
}
