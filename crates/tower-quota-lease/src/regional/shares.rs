use std::collections::BTreeMap;

use thiserror::Error;

/// The percentage of every quota that each region counts in its own store. The rest is the pool.
///
/// Give all instances in all regions the same shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionShares(BTreeMap<String, u32>);

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
        Ok(Self(regions))
    }

    pub(super) fn of(&self, region: &str) -> Result<u32, RegionSharesError> {
        let share = self.0.get(region).copied();
        share.ok_or_else(|| RegionSharesError::UnknownRegion {
            region: region.to_owned(),
            known: self.0.keys().cloned().collect(),
        })
    }

    pub(super) fn percents(&self) -> impl Iterator<Item = u32> {
        self.0.values().copied()
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
    /// The region has no share.
    #[error("region {region:?} has no share, only {known:?} have one")]
    UnknownRegion {
        /// The name of the region.
        region: String,
        /// The regions with a share.
        known: Vec<String>,
    },
}
