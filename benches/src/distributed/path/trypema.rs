//! trypema's hybrid provider: it counts in memory and writes to Redis every 10 ms, its default.

use std::error::Error;
use std::sync::Arc;

use trypema::hybrid::HybridRateLimiterProvider;
use trypema::redis::RedisKey;
use trypema::{RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::{Answer, Path};

/// A sliding window of a second.
#[derive(Clone)]
pub(in super::super) struct Trypema {
    provider: Arc<HybridRateLimiterProvider>,
    keys: Arc<[RedisKey]>,
    rate: RateLimit,
}

impl Trypema {
    pub(in super::super) async fn connect(
        url: &str,
        clients: u32,
        units: u32,
    ) -> Result<Self, Box<dyn Error>> {
        let connection = redis::Client::open(url)?.get_connection_manager().await?;
        let provider = HybridRateLimiterProvider::builder(connection)
            .window_size(WindowSize::seconds(1)?)
            .build()?;
        let keys = (0..clients).map(|client| RedisKey::try_from(format!("client-{client}")));
        Ok(Self {
            provider,
            keys: keys.collect::<Result<_, _>>()?,
            rate: RateLimit::per_second(units.into())?,
        })
    }
}

impl Path for Trypema {
    fn decide(&self, client: u32) -> impl Future<Output = Answer> + Send + 'static {
        let key = &self.keys[client as usize % self.keys.len()];
        // The way that its documentation recommends for hot paths.
        let at_once = self
            .provider
            .absolute()
            .try_inc(key.as_key_ref(), 1)
            .ok()
            .flatten();
        let later = at_once
            .is_none()
            .then(|| (Arc::clone(&self.provider), key.clone(), self.rate));
        async move {
            let decision = match later {
                None => at_once,
                Some((provider, key, rate)) => provider.absolute().inc(&key, &rate, 1).await.ok(),
            };
            decision.map_or(Answer::Failed, |decision| {
                Answer::of(matches!(decision, RateLimitDecision::Allowed))
            })
        }
    }
}
