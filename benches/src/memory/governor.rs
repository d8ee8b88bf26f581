//! governor's keyed limiter on a DashMap, which is its default.

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, QuantaUpkeepClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::allowance::{Allowance, EVERYONE, Visit};
use super::contender::{Both, Contender, Each, Mix};
use super::keys::Keyed;

/// One limit, on one of governor's clocks.
pub(crate) struct Governor<K: Keyed, C: Clock>(
    RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<C::Instant>>,
);

/// Creates a limiter on the default clock: quanta's, which reads the processor's counter.
pub(crate) fn governor<K: Keyed>(allowances: &[Allowance]) -> Each<Governor<K, DefaultClock>> {
    let clock = DefaultClock::default();
    Each::new(allowances, |allowance| {
        Governor::new(allowance, clock.clone())
    })
}

/// Creates a limiter on the fastest clock: a number in memory that a thread updates every millisecond.
pub(crate) fn upkept<K: Keyed>(
    allowances: &[Allowance],
) -> Result<Each<Governor<K, QuantaUpkeepClock>>, Box<dyn Error>> {
    let clock = UPKEEP.as_ref().map_err(String::as_str)?;
    Ok(Each::new(allowances, |allowance| {
        Governor::new(allowance, clock.clone())
    }))
}

/// One limit of all requests together.
pub(crate) struct OfEveryone(RateLimiter<NotKeyed, InMemoryState, DefaultClock>);

impl<K> Contender<K> for OfEveryone {
    fn admits(&self, _: &K) -> bool {
        self.0.check().is_ok()
    }
}

/// Creates a limiter of each key, and one of all requests together.
pub(crate) fn with_everyone<K: Keyed>() -> Both<Each<Governor<K, DefaultClock>>, OfEveryone> {
    Both(
        governor(Visit::Used.allowances(1)),
        OfEveryone(RateLimiter::direct(quota_of(&EVERYONE))),
    )
}

type Shared<K> = Each<Arc<Governor<K, DefaultClock>>>;

/// Creates a limiter of which nine in ten requests ask three limits, and one in ten a fourth too.
pub(crate) fn mixed<K: Keyed>() -> Mix<Shared<K>, Shared<K>> {
    let all: Vec<_> = governor::<K>(Visit::Used.allowances(4))
        .0
        .into_iter()
        .map(Arc::new)
        .collect();
    Mix::new(Each(all[..3].to_vec()), Each(all), 10)
}

/// A process can have one such thread.
static UPKEEP: LazyLock<Result<QuantaUpkeepClock, String>> = LazyLock::new(|| {
    QuantaUpkeepClock::from_interval(Duration::from_millis(1)).map_err(|error| format!("{error:?}"))
});

impl<K: Keyed, C: Clock> Governor<K, C> {
    fn new(allowance: &Allowance, clock: C) -> Self {
        Self(RateLimiter::new(
            quota_of(allowance),
            DefaultKeyedStateStore::default(),
            clock,
        ))
    }
}

fn quota_of(allowance: &Allowance) -> Quota {
    let burst = NonZeroU32::new(allowance.burst).unwrap_or(NonZeroU32::MIN);
    // The interval is not zero, so there is a quota.
    Quota::with_period(allowance.unit())
        .unwrap_or(Quota::per_second(burst))
        .allow_burst(burst)
}

impl<K: Keyed, C: Clock + Send + Sync> Contender<K> for Governor<K, C>
where
    C::Instant: Send + Sync,
{
    fn admits(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }
}
