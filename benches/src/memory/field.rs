//! Who takes part.

use std::error::Error;
use std::fmt::Display;
use std::hash::Hash;

use super::contender::{Contender, Keyed, Long};
use super::gcra::gcra;
use super::governor::{upkept, usual};
use super::limitador::Limitador;
use super::ours::TowerQuota;
use super::trypema::trypema;

pub(super) const TOWER_QUOTA: &str = "tower-quota";
pub(super) const GOVERNOR: &str = "governor";
pub(super) const UPKEPT: &str = "governor, upkept clock";
const GCRA: &str = "gcra";
pub(super) const TRYPEMA: &str = "trypema, local";
pub(super) const LIMITADOR: &str = "limitador, in memory";

pub(super) type Entered<K> = Result<Box<dyn Contender<K>>, Box<dyn Error>>;

/// A contender that has yet to be made, for so many limits and so many keys.
pub(super) struct Entrant<K> {
    pub(super) name: &'static str,
    pub(super) enter: fn(usize, u32) -> Entered<K>,
}

/// Key types, and who counts by them.
pub(super) trait Field: Keyed + Eq + Hash + Display {
    /// tower-quota first.
    fn entrants() -> Vec<Entrant<Self>>;
}

impl Field for u64 {
    fn entrants() -> Vec<Entrant<Self>> {
        by_any_key()
    }
}

/// Two know no other keys.
impl Field for String {
    fn entrants() -> Vec<Entrant<Self>> {
        let mut entrants = by_any_key();
        entrants.push(Entrant { name: TRYPEMA, enter: |limits, _| Ok(Box::new(trypema(limits)?)) });
        entrants.push(Entrant { name: LIMITADOR, enter: |limits, keys| Ok(Box::new(Limitador::new(limits, keys)?)) });
        entrants
    }
}

/// Of interest for the memory it takes, which the two are too heavy to be asked for.
impl Field for Long {
    fn entrants() -> Vec<Entrant<Self>> {
        by_any_key()
    }
}

fn by_any_key<K: Field>() -> Vec<Entrant<K>> {
    vec![
        Entrant {
            name: TOWER_QUOTA,
            enter: |limits, keys| match limits {
                1 => Ok(Box::new(TowerQuota::<1>::new(keys))),
                _ => Ok(Box::new(TowerQuota::<3>::new(keys))),
            },
        },
        Entrant { name: GOVERNOR, enter: |limits, _| Ok(Box::new(usual::<K>(limits))) },
        Entrant { name: UPKEPT, enter: |limits, _| Ok(Box::new(upkept::<K>(limits)?)) },
        Entrant { name: GCRA, enter: |limits, _| Ok(Box::new(gcra::<K>(limits))) },
    ]
}
