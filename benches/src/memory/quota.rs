//! The crate `quota`: sharded tables of one atomic number per key, and a cache of the keys asked for last.

use quota::{QuotaPolicy, QuotaPool, RefillRate};

use super::allowance::Allowance;
use super::contender::{Contender, Each};
use super::keys::Keyed;

pub(crate) struct Pool<K: Keyed>(QuotaPool<K>);

pub(crate) fn quota<K: Keyed>(allowances: &[Allowance]) -> Each<Pool<K>> {
    Each::new(allowances, |allowance| {
        let rate = RefillRate::per_sec(1.0 / allowance.unit().as_secs_f64());
        let policy = QuotaPolicy::new()
            .set_capacity(f64::from(allowance.burst))
            .set_refill_rate(rate);
        Pool(QuotaPool::with_key_type(policy, u64::from(allowance.burst)))
    })
}

impl<K: Keyed> Contender<K> for Pool<K> {
    /// Checks by the fast method, which returns only whether the request is admitted.
    fn admits(&self, key: &K) -> bool {
        self.0.check(key, 1)
    }
}
