//! trypema's local provider: an exact sliding window of buckets, for keys of text.

use std::error::Error;
use std::sync::Arc;

use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::allowance::Allowance;
use super::contender::{Contender, Each};

pub(crate) struct Trypema {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

/// Creates a limiter with the window and buckets of its documentation's first example.
///
/// Its cleanup thread is off: nothing expires within a run.
pub(crate) fn trypema(allowances: &[Allowance]) -> Result<Each<Trypema>, Box<dyn Error>> {
    let limiters = allowances.iter().map(|allowance| {
        let provider = LocalRateLimiterProvider::builder()
            .window_size(WindowSize::minutes(1)?)
            .bucket_size(BucketSize::milliseconds(10)?)
            .disable_cleanup()
            .build()?;
        Ok(Trypema {
            provider,
            rate: RateLimit::per_minute(f64::from(allowance.burst))?,
        })
    });
    Ok(Each(limiters.collect::<Result<_, Box<dyn Error>>>()?))
}

impl Contender<String> for Trypema {
    fn admits(&self, key: &String) -> bool {
        matches!(
            self.provider.absolute().inc(key, &self.rate, 1),
            RateLimitDecision::Allowed
        )
    }
}
