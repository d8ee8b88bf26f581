//! The limiters that take part, by type of key.

use std::error::Error;

use tower_quota_core::MemoryStore;

use super::allowance::Visit;
use super::contender::Contender;
use super::gcra::gcra;
use super::governor::{governor, upkept};
use super::keys::{Keyed, Long};
use super::limitador::Limitador;
use super::ours::TowerQuota;
use super::quota::quota;
use super::trypema::trypema;

pub(super) const TOWER_QUOTA: &str = "tower-quota";
pub(super) const GOVERNOR: &str = "governor";
pub(super) const UPKEPT: &str = "governor, upkept clock";
pub(super) const QUOTA: &str = "quota";
const GCRA: &str = "gcra";
pub(super) const TRYPEMA: &str = "trypema, local";
pub(super) const LIMITADOR: &str = "limitador, in memory";

pub(super) type Made<K> = Result<Box<dyn Contender<K>>, Box<dyn Error>>;

/// The workload that a limiter is made for.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) limits: usize,
    pub(super) keys: u32,
    pub(super) visit: Visit,
}

/// A limiter that is not created yet.
pub(super) struct Entrant<K> {
    pub(super) name: &'static str,
    pub(super) make: fn(Setup) -> Made<K>,
}

/// Keys that limiters count by.
pub(super) trait Entrants: Keyed {
    /// Lists the limiters that count by them, tower-quota first.
    fn entrants() -> Vec<Entrant<Self>>;
}

impl Entrants for u64 {
    fn entrants() -> Vec<Entrant<Self>> {
        by_any_key()
    }
}

/// trypema and limitador know no other keys.
impl Entrants for String {
    fn entrants() -> Vec<Entrant<Self>> {
        let mut entrants = by_any_key();
        entrants.push(Entrant {
            name: TRYPEMA,
            make: |setup| Ok(Box::new(trypema(setup.visit.allowances(setup.limits))?)),
        });
        entrants.push(Entrant {
            name: LIMITADOR,
            make: |setup| {
                Ok(Box::new(Limitador::new(
                    setup.visit.allowances(setup.limits),
                    setup.keys,
                )?))
            },
        });
        entrants
    }
}

impl Entrants for Long {
    fn entrants() -> Vec<Entrant<Self>> {
        by_any_key()
    }
}

fn by_any_key<K: Entrants>() -> Vec<Entrant<K>> {
    vec![
        Entrant {
            name: TOWER_QUOTA,
            make: |setup| Ok(ours(setup)),
        },
        Entrant {
            name: GOVERNOR,
            make: |setup| {
                Ok(Box::new(governor::<K>(
                    setup.visit.allowances(setup.limits),
                )))
            },
        },
        Entrant {
            name: UPKEPT,
            make: |setup| Ok(Box::new(upkept::<K>(setup.visit.allowances(setup.limits))?)),
        },
        Entrant {
            name: QUOTA,
            make: |setup| Ok(Box::new(quota::<K>(setup.visit.allowances(setup.limits)))),
        },
        Entrant {
            name: GCRA,
            make: |setup| Ok(Box::new(gcra::<K>(setup.visit.allowances(setup.limits)))),
        },
    ]
}

/// Creates a store of the default capacity, or of as many keys as there are.
fn ours<K: Keyed>(setup: Setup) -> Box<dyn Contender<K>> {
    let store = MemoryStore::with_capacity(MemoryStore::DEFAULT_CAPACITY.max(setup.keys as usize));
    let allowances = setup.visit.allowances(setup.limits);
    if setup.limits == 1 {
        Box::new(TowerQuota::<1>::new(store, allowances))
    } else {
        Box::new(TowerQuota::<3>::new(store, allowances))
    }
}
