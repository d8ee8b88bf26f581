mod quotas;
mod shares;

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, PoisonError, RwLock};

use tower_quota_core::{
    Charge, ChargeMode, Clock, Decision, Left, LimitStatus, MonotonicClock, Operation, OwnedCharge,
    RefusalCache, Store,
};

use self::quotas::{Quotas, Split};
pub use self::shares::{RegionShares, RegionSharesError};

/// A store for a service in several regions, each with a store of its own.
///
/// The *floor* of a region is its share of each quota, counted in its local store. The rest is the *pool*, counted in a
/// home store that all regions use. The pool decides requests that exceed a floor. The checked requests of all regions
/// together never exceed the quota, and each region serves its floor while the other regions are unreachable.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota};
/// use tower_quota_lease::{RegionShares, Regional};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let (redis_in_europe, redis_at_home) = (MemoryStore::new(), MemoryStore::new());
/// // Europe may always use 30 %, the United States 20 %, and both share the other 50 %.
/// let shares = RegionShares::new([("eu", 30), ("us", 20)])?;
/// let store = Regional::new(redis_in_europe, redis_at_home, "eu", shares)?;
///
/// // A client in Europe gets the floor of 30 uploads and the pool of 50.
/// let limiter = Limiter::new(store, "uploads", Quota::per_hour(100));
/// for _ in 0..80 {
///     assert!(limiter.check("ann").await?.is_allowed());
/// }
/// assert!(!limiter.check("ann").await?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// Use a [`Leased`](crate::Leased) store as your home store, so that hot clients need no round trip to the home region.
/// On the same server, give the local and the home store different prefixes.
///
/// # Behaviour
///
/// * The floors admit a request only together, for all limits. Otherwise the pool decides the whole
///   request. If both refuse, you get the refusal with the shorter retry time.
/// * If a store fails, the other store decides alone.
/// * The home store counts the whole quota if a region would get less than one unit, and for
///   [penalties](Charge::penalty) and [counted refusals](Charge::count_refusals), because a refusal by a floor is not
///   final.
///   The home store then decides the whole request, so the other limits of the request have only their pool. Count such
///   a limit in a layer of its own.
/// * A [shadow](Charge::shadow) never sends a request home, so the floor judges shadows. To try a whole quota, count the
///   shadow in a layer on the home store alone.
/// * A [surcharge](Operation::Surcharge), a refund or a renewal reaches the store that was charged. If the floor has gone,
///   more units and lost holds go to the pool.
/// * A [`Charge`](Operation::Charge) without a check takes the units from floor and pool, because either may admit the next
///   request. A reset also reaches both.
/// * Requests with [forced](ChargeMode::Forced) charges use the floor only.
///
/// # Caveats
///
/// * The other floors do not see a reset, debts, forced charges and charges without a check. The guide on regions lists what
///   may then exceed the quota.
/// * All instances of a region need the same local store. No other region may use that store, unless under another prefix.
/// * A request that costs more units than a floor or the pool has is always refused.
/// * A client who is active in several regions may be refused by a floor while another floor has units.
/// * [`remaining`](LimitStatus::remaining) describes the store that decided, and is a lower bound.
#[derive(Debug)]
pub struct Regional<L, H> {
    inner: Arc<RegionalInner<L, H>>,
}

#[derive(Debug)]
struct RegionalInner<L, H> {
    local: RefusalCache<L>,
    home: RefusalCache<H>,
    region: Box<str>,
    clock: Box<dyn Clock>,
    quotas: RwLock<Quotas>,
}

impl<L: Store, H: Store<Error = L::Error>> Regional<L, H> {
    /// Creates the store of a region.
    ///
    /// Floors and pool begin with these shares. If you have changed the shares lately, name the
    /// [replaced](RegionShares::replacing) shares.
    ///
    /// # Errors
    /// Returns [`RegionSharesError::UnknownRegion`] if `region` has no share, and [`RegionSharesError::OneStore`] if `local`
    /// and `home` are clones.
    pub fn new(
        local: L,
        home: H,
        region: &str,
        shares: RegionShares,
    ) -> Result<Self, RegionSharesError> {
        Self::with_clock(local, home, region, shares, MonotonicClock::new())
    }

    /// Creates the store of a region, on your clock. Only differences between instants matter.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn with_clock(
        local: L,
        home: H,
        region: &str,
        shares: RegionShares,
        clock: impl Clock + Clone,
    ) -> Result<Self, RegionSharesError> {
        shares.of(region)?;
        if local.identity().is_some() && local.identity() == home.identity() {
            return Err(RegionSharesError::OneStore);
        }
        let quotas = Quotas::new(shares, region, clock.now());
        Ok(Self {
            inner: Arc::new(RegionalInner {
                local: RefusalCache::with_clock(local, clock.clone()),
                home: RefusalCache::with_clock(home, clock.clone()),
                region: region.into(),
                clock: Box::new(clock),
                quotas: RwLock::new(quotas),
            }),
        })
    }

    /// Replaces the shares. Equal shares change nothing.
    ///
    /// Lower shares apply at once. Higher shares apply after twice the [window](tower_quota_core::Quota::window) of the
    /// quota, and not before a window and a minute have passed, because other regions may use their former shares for
    /// another minute.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new), and keeps the former shares.
    pub fn set_shares(&self, shares: RegionShares) -> Result<(), RegionSharesError> {
        let inner = &self.inner;
        shares.of(&inner.region)?;
        let mut quotas = inner.quotas.write().unwrap_or_else(PoisonError::into_inner);
        quotas.change(shares, &inner.region, inner.clock.now());
        Ok(())
    }

    fn request(&self, operation: Operation, charges: &[Charge<'_>]) -> RegionalRequest {
        let inner = &self.inner;
        let quotas = inner.quotas.read().unwrap_or_else(PoisonError::into_inner);
        let now = inner.clock.now();
        let mut parts = Vec::new();
        let mut has_floor = true;
        let mut has_forced = false;
        for charge in charges {
            let split = quotas.of(charge, now);
            has_floor &= split.floor.is_some();
            has_forced |= charge.mode() == ChargeMode::Forced;
            parts.push((OwnedCharge::from(charge), split));
        }
        // A floor that is gone admits no request, so more units would have no effect there.
        let may_be_local = match operation {
            Operation::Reset | Operation::Refund { .. } => true,
            Operation::Renew { .. } => has_floor || !has_forced,
            _ => has_floor,
        };
        let (is_local, is_home) = match operation {
            _ if !may_be_local => (false, true),
            Operation::Surcharge { taken_at }
            | Operation::Refund { taken_at }
            | Operation::Renew { taken_at } => (!taken_at.is_marked(), taken_at.is_marked()),
            // Either store may admit the next request, so both take a charge without a check.
            Operation::Reset | Operation::Charge => (true, true),
            // A store takes forced charges even of refused requests, so ask one store only.
            _ => (true, !has_forced && operation != Operation::Refuse),
        };
        RegionalRequest {
            operation,
            is_local,
            is_home,
            parts,
        }
    }
}

struct RegionalRequest {
    operation: Operation,
    is_local: bool,
    /// Whether to ask the home store, unless the local store admits the request.
    is_home: bool,
    parts: Vec<(OwnedCharge, Split)>,
}

impl RegionalRequest {
    /// Marks the instants of the home store, so that a refund finds the store that was charged.
    async fn apply<S: Store>(
        &self,
        store: &RefusalCache<S>,
        is_home: bool,
    ) -> Result<Decision, S::Error> {
        let mut charges = Vec::new();
        for (charge, split) in &self.parts {
            let quota = match &split.floor {
                Some(floor) if !is_home => floor,
                _ => &split.home,
            };
            charges.push(charge.as_charge().with_quota(quota));
        }
        let mut operation = self.operation;
        if let Some(taken_at) = operation.taken_at_mut() {
            *taken_at = taken_at.unmarked();
        }
        let decision = store.apply(operation, &charges).await?;
        let statuses = decision.statuses().iter().zip(&self.parts);
        let statuses = statuses.map(|(status, (charge, _))| LimitStatus {
            limit: charge.as_charge().quota().capacity(),
            left: Left::new(status.remaining(), status.reset_after()),
            ..*status
        });
        let at = match is_home {
            true => decision.at().marked(),
            false => decision.at(),
        };
        Ok(Decision::from_statuses(self.operation, at, statuses))
    }
}

impl<L: Store, H: Store<Error = L::Error>> Store for Regional<L, H> {
    type Error = L::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, L::Error>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let request = self.request(operation, charges);
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            if !request.is_local {
                return request.apply(&inner.home, true).await;
            }
            let floor = request.apply(&inner.local, false).await;
            let is_for_both = matches!(operation, Operation::Reset | Operation::Charge);
            let is_admitted = floor.as_ref().is_ok_and(Decision::is_allowed);
            if !request.is_home || is_admitted && !is_for_both {
                return floor;
            }
            let pool = request.apply(&inner.home, true).await;
            match (floor, pool) {
                (Ok(floor), Ok(pool)) => Ok(sooner(floor, pool)),
                // Report an error of either store, so that you know of incomplete resets and charges.
                (floor, pool) if is_for_both => floor.and(pool),
                (Ok(decision), Err(_)) | (Err(_), Ok(decision)) => Ok(decision),
                (Err(error), Err(_)) => Err(error),
            }
        })
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.inner).addr())
    }

    async fn close(&self, deadline: Duration) -> bool {
        let started = self.inner.clock.now();
        let is_local_closed = self.inner.local.close(deadline).await;
        let elapsed = self.inner.clock.now().since(started);
        let rest = deadline.saturating_sub(elapsed);
        self.inner.home.close(rest).await && is_local_closed
    }
}

/// Returns an admission by the pool, or else the refusal with the shorter retry time.
fn sooner(local: Decision, home: Decision) -> Decision {
    let retry = |decision: &Decision| decision.retry_after().unwrap_or(Duration::MAX);
    if home.is_allowed() || retry(&home) < retry(&local) {
        home
    } else {
        local
    }
}

impl<L, H> Clone for Regional<L, H> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}
