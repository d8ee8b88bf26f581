//! limitador's cached Redis storage: it counts in memory and writes to Redis in the background.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use limitador::AsyncRateLimiter;
use limitador::limit::{Context, Limit};
use limitador::storage::redis::CachedRedisStorageBuilder;

use super::{Answer, Path};

const NAMESPACE: &str = "clients";
/// As long as a lease. By default it is a second, which is the length of the window.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

/// A fixed window of a second that begins with its first request.
#[derive(Clone)]
pub(in super::super) struct Limitador {
    limiter: Arc<AsyncRateLimiter>,
}

impl Limitador {
    pub(in super::super) async fn connect(url: &str, units: u32) -> Result<Self, Box<dyn Error>> {
        let storage = CachedRedisStorageBuilder::new(url)
            .flushing_period(FLUSH_EVERY)
            .build()
            .await?;
        let limiter = AsyncRateLimiter::new_with_storage(Box::new(storage));
        limiter.add_limit(Limit::new(
            NAMESPACE,
            units.into(),
            1,
            vec![],
            vec!["client".try_into()?],
        ));
        Ok(Self {
            limiter: Arc::new(limiter),
        })
    }
}

impl Path for Limitador {
    fn decide(&self, client: u32) -> impl Future<Output = Answer> + Send + 'static {
        let limiter = Arc::clone(&self.limiter);
        async move {
            let context = Context::from(HashMap::from([("client".to_owned(), client.to_string())]));
            let result = limiter
                .check_rate_limited_and_update(&NAMESPACE.into(), &context, 1)
                .await;
            result.map_or(Answer::Failed, |result| Answer::of(!result.limited))
        }
    }
}
