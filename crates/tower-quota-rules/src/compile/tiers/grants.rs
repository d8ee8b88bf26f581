//! Quotas of tiers and overrides, as numbers into a table of distinct quotas.

use core::fmt;
use std::collections::HashMap;

use tower_quota::{Name, Quota};

/// The distinct quotas of all tiers and overrides.
#[derive(Default)]
pub(super) struct Quotas {
    list: Vec<Quota>,
    /// The numbers of quotas, while they are collected.
    numbers: HashMap<Quota, u32>,
}

/// The quota of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TierQuota {
    /// The position of the limit.
    pub(super) limit: u32,
    /// The number of the quota; `None` if the limit does not apply.
    pub(super) quota: Option<u32>,
}

/// The tier and the quotas of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted<'a> {
    quotas: &'a Quotas,
    pub(crate) tier: Option<Name>,
    own: &'a [TierQuota],
    of_tier: &'a [TierQuota],
}

impl Quotas {
    /// Returns the number of a quota.
    pub(super) fn number(&mut self, quota: Quota) -> u32 {
        *self.numbers.entry(quota).or_insert_with(|| {
            self.list.push(quota);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Frees what is needed to collect quotas only.
    pub(super) fn finish(&mut self) {
        self.numbers = HashMap::new();
        self.list.shrink_to_fit();
    }
}

impl<'a> Granted<'a> {
    pub(super) const fn new(
        quotas: &'a Quotas,
        tier: Option<Name>,
        own: &'a [TierQuota],
        of_tier: &'a [TierQuota],
    ) -> Self {
        Self {
            quotas,
            tier,
            own,
            of_tier,
        }
    }

    /// Returns the grants of a client without a tier.
    pub(super) const fn none(quotas: &'a Quotas) -> Self {
        Self::new(quotas, None, &[], &[])
    }

    /// Returns the quota of a limit: the outer `None` is the limit's own, the inner one that it does not apply.
    #[inline]
    pub(crate) fn quota(&self, limit: u32) -> Option<Option<Quota>> {
        let grant = |grants: &[TierQuota]| {
            let at = grants
                .binary_search_by_key(&limit, |grant| grant.limit)
                .ok()?;
            grants.get(at).copied()
        };
        let quota = grant(self.own).or_else(|| grant(self.of_tier))?.quota;
        Some(quota.and_then(|number| self.quotas.list.get(usize::try_from(number).ok()?).copied()))
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quotas({})", self.list.len())
    }
}
