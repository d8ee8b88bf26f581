use std::collections::BTreeMap;

use thiserror::Error;

/// The percentage of every quota that each region counts in its own store. The rest is the pool.
///
/// Give all instances in all regions the same shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionShares {
    percents: BTreeMap<String, u32>,
    replaced: Vec<Self>,
}

impl RegionShares {
    /// Creates shares from the names of your regions and their percentages.
    ///
    /// # Errors
    /// Returns [`RegionSharesError`] if a region has no percentage or two, or if less than one
    /// percent remains for the pool.
    pub fn new<N: Into<String>>(
        shares: impl IntoIterator<Item = (N, u32)>,
    ) -> Result<Self, RegionSharesError> {
        let mut regions = BTreeMap::new();
        let mut sum = 0_u32;
        for (region, percent) in shares {
            let region = region.into();
            if percent == 0 {
                return Err(RegionSharesError::NoShare(region));
            }
            sum = sum.saturating_add(percent);
            if let Some(_former) = regions.insert(region.clone(), percent) {
                return Err(RegionSharesError::TwoShares(region));
            }
        }
        if sum > 99 {
            return Err(RegionSharesError::NoPool(sum));
        }
        Ok(Self {
            percents: regions,
            replaced: Vec::new(),
        })
    }

    /// Names the shares in force before, and the shares that they replaced.
    ///
    /// A program that starts does not know earlier shares. Name the shares of the last two windows of your longest quota,
    /// so that a restart waits for them as [`Regional::set_shares`](crate::Regional::set_shares) does, from its start.
    ///
    /// ```
    /// use tower_quota_lease::RegionShares;
    ///
    /// let former = RegionShares::new([("eu", 10), ("us", 60)])?;
    /// let shares = RegionShares::new([("eu", 60), ("us", 10)])?.replacing(&former);
    /// # Ok::<(), tower_quota_lease::RegionSharesError>(())
    /// ```
    #[must_use]
    pub fn replacing(mut self, former: &Self) -> Self {
        let without_replaced = Self {
            percents: former.percents.clone(),
            replaced: Vec::new(),
        };
        for replaced in former.replaced.iter().chain([&without_replaced]) {
            if replaced.percents != self.percents && !self.replaced.contains(replaced) {
                self.replaced.push(replaced.clone());
            }
        }
        self
    }

    pub(super) fn replaced(&self) -> &[Self] {
        &self.replaced
    }

    pub(super) fn of(&self, region: &str) -> Result<u32, RegionSharesError> {
        let share = self.percents.get(region).copied();
        share.ok_or_else(|| RegionSharesError::UnknownRegion {
            region: region.to_owned(),
            known: self.percents.keys().cloned().collect(),
        })
    }

    pub(super) fn percents(&self) -> impl Iterator<Item = u32> {
        self.percents.values().copied()
    }

    pub(super) fn pool(&self) -> u32 {
        100 - self.percents().sum::<u32>()
    }
}

/// The error of wrong [`RegionShares`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegionSharesError {
    /// A region has 0 percent.
    #[error("region {0:?} has 0 %: give at least 1 %, or leave the region out")]
    NoShare(String),
    /// A region has two percentages.
    #[error("region {0:?} has two shares: keep one")]
    TwoShares(String),
    /// The sum of the shares is above 99.
    #[error(
        "the shares of all regions are {0} % together: give at most 99 %, the rest is the pool"
    )]
    NoPool(u32),
    /// Floor and pool are counted in the same store.
    #[error(
        "the local and the home store are clones of one store: give the pool a store or a prefix of its own"
    )]
    OneStore,
    /// The region has no share.
    #[error("region {region:?} has no share, only {known:?} have one")]
    UnknownRegion {
        /// The name of the region.
        region: String,
        /// The regions with a share.
        known: Vec<String>,
    },
}
