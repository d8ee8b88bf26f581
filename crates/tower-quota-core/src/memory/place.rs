//! Finds the place of a key in the store.

use core::ptr;

use smallvec::SmallVec;

use super::Inner;
use crate::charge::Charge;
use crate::key::Key;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The shard. This field is the first, because places sort by shard.
    pub(super) shard: usize,
    pub(super) hash: u64,
}

impl Inner {
    pub(super) fn hashes<'a>(&'a self, charges: &'a [Charge<'a>]) -> impl Iterator<Item = u64> {
        let mut last: Option<(&Key<'_>, u64)> = None;
        charges.iter().map(move |charge| {
            // Hash a key once, because the charges of a client usually share one key.
            let hash = match last {
                Some((key, hash)) if ptr::eq(key, charge.key()) => hash,
                _ => self.hash(charge.key()),
            };
            last = Some((charge.key(), hash));
            hash
        })
    }

    pub(super) fn places_of(&self, hashes: impl Iterator<Item = u64>) -> SmallVec<[Place; 2]> {
        let mut places: SmallVec<[Place; 2]> = SmallVec::new();
        for hash in hashes {
            let shard = self.shard_of(hash);
            let place = Place { shard, hash };
            if let Err(position) = places.binary_search(&place) {
                places.insert(position, place);
            }
        }
        places
    }
}
