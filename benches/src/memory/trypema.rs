//! trypema's local provider: an exact sliding window of buckets, for keys of text.

use std::error::Error;
use std::sync::Arc;

use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::contender::{ALLOWANCES, Contender, Each};

pub(crate) struct Trypema {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

/// With the window and the buckets of its own first example, and without the thread that clears away what is stale:
/// nothing is.
pub(crate) fn trypema(limits: usize) -> Result<Each<Trypema>, Box<dyn Error>> {
    let limiters = ALLOWANCES.iter().take(limits).map(|allowance| {
        let provider = LocalRateLimiterProvider::builder()
            .window_size(WindowSize::minutes(1)?)
            .bucket_size(BucketSize::milliseconds(10)?)
            .disable_cleanup()
            .build()?;
        Ok(Trypema { provider, rate: RateLimit::per_minute(f64::from(allowance.burst))? })
    });
    Ok(Each(limiters.collect::<Result<_, Box<dyn Error>>>()?))
}

impl Contender<String> for Trypema {
    fn admits(&self, key: &String) -> bool {
        matches!(self.provider.absolute().inc(key, &self.rate, 1), RateLimitDecision::Allowed)
    }
}
