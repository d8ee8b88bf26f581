//! Regions share a quota, although their stores are far apart.

mod quotas;
mod shares;

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, ChargeMode, Clock, Decision, Left, LimitStatus, MonotonicClock, Operation, OwnedCharge,
    RefusalCache, Store, Timestamp,
};

use self::quotas::{Quotas, Split};
pub use self::shares::{RegionShares, RegionSharesError};

/// A store for a service in several regions, each with a store of its own.
///
/// Every region has a share of each quota, its floor, and counts the floor in its local store. The rest of the quota is a
/// pool in a home store, which all regions use. A request that exceeds a floor is decided by the pool. Together, the
/// regions never exceed the quota, and each region serves its floor while the other regions are unreachable.
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
/// Use a [`Leased`](crate::Leased) store as the home store to decide hot clients without a round trip to the home region.
/// If the home region also has a local store on the same server, give the two stores different prefixes.
///
/// # Behaviour
///
/// * A request is decided by a single store. A floor admits a request if the floors of all limits admit the request.
///   Otherwise the pool decides. If both refuse, you get the refusal with the shorter retry time.
/// * If the home store fails, the floor alone decides. If the local store fails, the pool alone decides.
/// * A quota that leaves a region less than one unit is counted in the home store as a whole. So are limits with
///   [penalties](Charge::penalty) and [counted refusals](Charge::count_refusals), because a refusal by a floor is not final.
/// * [`Charge`](Operation::Charge) and requests with [forced](ChargeMode::Forced) charges use the floor only.
/// * Refunds and renewals reach the store that was charged. A reset reaches both stores.
///
/// # Caveats
///
/// * A request that costs more units than a floor or the pool has is always refused.
/// * A client who is active in several regions may be refused by a floor while another floor has units.
/// * [`remaining`](LimitStatus::remaining) has the units of the store that decided, which is a lower bound.
pub struct Regional<L, H, C = MonotonicClock> {
    inner: Arc<Inner<L, H, C>>,
}

struct Inner<L, H, C> {
    local: RefusalCache<L>,
    home: RefusalCache<H>,
    region: Box<str>,
    clock: C,
    quotas: RwLock<Arc<Quotas>>,
}

impl<L: Store, H: Store<Error = L::Error>> Regional<L, H> {
    /// Creates the store of a region.
    ///
    /// # Errors
    /// [`RegionSharesError::UnknownRegion`] if `region` has no share.
    pub fn new(
        local: L,
        home: H,
        region: &str,
        shares: RegionShares,
    ) -> Result<Self, RegionSharesError> {
        Self::with_clock(local, home, region, shares, MonotonicClock::new())
    }
}

impl<L: Store, H: Store<Error = L::Error>, C: Clock + Clone> Regional<L, H, C> {
    /// Creates the store of a region, on your clock. Only differences between instants matter.
    ///
    /// # Errors
    /// [`RegionSharesError::UnknownRegion`] if `region` has no share.
    pub fn with_clock(
        local: L,
        home: H,
        region: &str,
        shares: RegionShares,
        clock: C,
    ) -> Result<Self, RegionSharesError> {
        shares.of(region)?;
        Ok(Self {
            inner: Arc::new(Inner {
                local: RefusalCache::with_clock(local, clock.clone()),
                home: RefusalCache::with_clock(home, clock.clone()),
                region: region.into(),
                clock,
                quotas: RwLock::new(Arc::new(Quotas::new(shares))),
            }),
        })
    }

    /// Replaces the shares.
    ///
    /// Lower shares apply at once. Higher shares apply after a minute, and not before twice the
    /// [window](tower_quota_core::Quota::window) of the quota has passed, because other regions may have used their former
    /// shares until now.
    ///
    /// # Errors
    /// [`RegionSharesError::UnknownRegion`] if the region of this store has no share. The former shares then stay.
    pub fn set_shares(&self, shares: RegionShares) -> Result<(), RegionSharesError> {
        let inner = &self.inner;
        shares.of(&inner.region)?;
        let mut quotas = inner.quotas.write().unwrap_or_else(PoisonError::into_inner);
        *quotas = Arc::new(quotas.changed(shares, inner.clock.now()));
        Ok(())
    }

    fn request(&self, operation: Operation, charges: &[Charge<'_>]) -> Request {
        let inner = &self.inner;
        let quotas = Arc::clone(&inner.quotas.read().unwrap_or_else(PoisonError::into_inner));
        let now = inner.clock.now();
        let mut splits = SmallVec::new();
        let mut may_ask_twice = matches!(operation, Operation::Check | Operation::Peek);
        for charge in charges {
            splits.push(quotas.of(charge, &inner.region, now));
            // A store takes a forced charge even if it refuses the request.
            may_ask_twice &= charge.mode() != ChargeMode::Forced;
        }
        let has_floor = splits.iter().all(|split: &Split| split.floor.is_some());
        let tiers = match operation {
            Operation::Reset => Tiers::Both,
            Operation::Refund { taken_at } | Operation::Renew { taken_at } => {
                if taken_at.is_marked() {
                    Tiers::Home
                } else {
                    Tiers::Local
                }
            }
            _ if !has_floor => Tiers::Home,
            _ if may_ask_twice => Tiers::LocalThenHome,
            _ => Tiers::Local,
        };
        Request {
            operation,
            tiers,
            splits,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tiers {
    Local,
    LocalThenHome,
    Home,
    Both,
}

struct Request {
    operation: Operation,
    tiers: Tiers,
    splits: SmallVec<[Split; 3]>,
}

impl Request {
    fn at_local<'a>(&'a self, charges: &[Charge<'a>]) -> SmallVec<[Charge<'a>; 3]> {
        let charges = charges.iter().zip(&self.splits);
        let local = charges.map(|(charge, split)| match &split.floor {
            Some(floor) => charge.with_quota(floor),
            None => *charge,
        });
        local.collect()
    }

    fn at_home<'a>(&'a self, charges: &[Charge<'a>]) -> SmallVec<[Charge<'a>; 3]> {
        let charges = charges.iter().zip(&self.splits);
        let home = charges.map(|(charge, split)| charge.with_quota(&split.home));
        home.collect()
    }

    fn operation_at_home(&self) -> Operation {
        match self.operation {
            Operation::Refund { taken_at } => Operation::Refund {
                taken_at: taken_at.unmarked(),
            },
            Operation::Renew { taken_at } => Operation::Renew {
                taken_at: taken_at.unmarked(),
            },
            operation => operation,
        }
    }

    /// Returns the decision of a store for the limits that the client knows.
    ///
    /// `at` is the instant of the decision, marked if the home store decided.
    fn answer(&self, decision: &Decision, at: Timestamp) -> Decision {
        let statuses = decision.statuses().iter().zip(&self.splits);
        let statuses = statuses.map(|(status, split)| LimitStatus {
            limit: split.capacity,
            left: Left::new(status.remaining(), status.reset_after()),
            ..*status
        });
        Decision::from_statuses(self.operation, at, statuses)
    }
}

impl<L: Store, H: Store<Error = L::Error>, C: Clock + Clone> Store for Regional<L, H, C> {
    type Error = L::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, L::Error>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let request = self.request(operation, charges);
        let owned: SmallVec<[OwnedCharge; 3]> = charges.iter().map(OwnedCharge::from).collect();
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let charges: SmallVec<[Charge<'_>; 3]> =
                owned.iter().map(OwnedCharge::as_charge).collect();
            let mut floor = None;
            if request.tiers != Tiers::Home {
                let charges = request.at_local(&charges);
                let answer = inner.local.apply(operation, &charges).await;
                let answer = answer.map(|decision| request.answer(&decision, decision.at()));
                let is_final = match request.tiers {
                    Tiers::LocalThenHome => answer.as_ref().is_ok_and(Decision::is_allowed),
                    tiers => tiers == Tiers::Local,
                };
                if is_final {
                    return answer;
                }
                floor = Some(answer);
            }
            let charges = request.at_home(&charges);
            let answer = inner.home.apply(request.operation_at_home(), &charges);
            let pool = answer.await;
            let pool = pool.map(|decision| request.answer(&decision, decision.at().marked()));
            match (floor, pool) {
                (None, pool) => pool,
                (Some(Ok(floor)), Ok(pool)) => Ok(sooner(floor, pool)),
                // An operator has to know that a reset has reached only one store.
                (Some(floor), pool) if request.tiers == Tiers::Both => floor.and(pool),
                (Some(Ok(decision)), Err(_)) | (Some(Err(_)), Ok(decision)) => Ok(decision),
                (Some(Err(error)), Err(_)) => Err(error),
            }
        })
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let request = self.request(Operation::Check, charges);
        let local = request.at_local(charges);
        let is_admitted = request.tiers == Tiers::LocalThenHome
            && self.inner.local.check_at_once(&local, decision)
            && decision.is_allowed();
        if is_admitted {
            *decision = request.answer(decision, decision.at());
        }
        is_admitted
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.inner).addr())
    }

    /// Closes the local store, and then the home store.
    async fn close(&self, deadline: Duration) -> bool {
        let started = self.inner.clock.now();
        let is_local_closed = self.inner.local.close(deadline).await;
        let elapsed = self.inner.clock.now().since(started);
        let rest = deadline.saturating_sub(elapsed);
        self.inner.home.close(rest).await && is_local_closed
    }
}

/// Returns the refusal of the floor, unless the pool admits the request or has the shorter retry time.
fn sooner(local: Decision, home: Decision) -> Decision {
    let retry = |decision: &Decision| decision.retry_after().unwrap_or(Duration::MAX);
    if home.is_allowed() || retry(&home) < retry(&local) {
        home
    } else {
        local
    }
}

impl<L, H, C> Clone for Regional<L, H, C> {
    /// Clones share the stores and the shares.
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<L: fmt::Debug, H: fmt::Debug, C> fmt::Debug for Regional<L, H, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regional")
            .field("region", &self.inner.region)
            .field("local", &self.inner.local)
            .field("home", &self.inner.home)
            .finish_non_exhaustive()
    }
}
