//! governor's keyed limiter on a DashMap, which is its default.

use std::error::Error;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, QuantaUpkeepClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::contender::{Allowance, Contender, Each};

/// One limit, on one of governor's clocks.
pub(crate) struct Governor<K: Clone + Hash + Eq, C: Clock>(
    RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<C::Instant>>,
);

/// On the clock it takes unless told otherwise: quanta's, which reads the processor's counter.
pub(crate) fn usual<K: Clone + Hash + Eq>(limits: usize) -> Each<Governor<K, DefaultClock>> {
    let clock = DefaultClock::default();
    Each::new(limits, |allowance| Governor::new(allowance, clock.clone()))
}

/// On its fastest: a number in memory that a thread brings up to date every millisecond.
pub(crate) fn upkept<K: Clone + Hash + Eq>(
    limits: usize,
) -> Result<Each<Governor<K, QuantaUpkeepClock>>, Box<dyn Error>> {
    let clock = UPKEEP.as_ref().map_err(String::as_str)?;
    Ok(Each::new(limits, |allowance| Governor::new(allowance, clock.clone())))
}

/// A process can have one such thread.
static UPKEEP: LazyLock<Result<QuantaUpkeepClock, String>> =
    LazyLock::new(|| QuantaUpkeepClock::from_interval(Duration::from_millis(1)).map_err(|error| format!("{error:?}")));

impl<K: Clone + Hash + Eq, C: Clock> Governor<K, C> {
    fn new(allowance: &Allowance, clock: C) -> Self {
        let burst = NonZeroU32::new(allowance.burst).unwrap_or(NonZeroU32::MIN);
        // The interval is not zero, so there is a quota.
        let quota = Quota::with_period(allowance.unit).unwrap_or(Quota::per_second(burst)).allow_burst(burst);
        Self(RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock))
    }
}

impl<K: Clone + Hash + Eq + Send + Sync, C: Clock + Sync> Contender<K> for Governor<K, C>
where
    C::Instant: Sync,
{
    fn admits(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }
}
