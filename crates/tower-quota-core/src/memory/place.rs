//! Finds the place of a key in the store.

use smallvec::SmallVec;

use super::MemoryInner;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPlace {
    /// The shard. This field is the first, because places sort by shard.
    pub(super) shard: usize,
    pub(super) hash: u64,
}

impl MemoryInner {
    pub(super) fn places_of(&self, hashes: impl Iterator<Item = u64>) -> SmallVec<[RowPlace; 2]> {
        let mut places: SmallVec<[RowPlace; 2]> = SmallVec::new();
        for hash in hashes {
            let shard = self.shard_of(hash);
            let place = RowPlace { shard, hash };
            if let Err(position) = places.binary_search(&place) {
                places.insert(position, place);
            }
        }
        places
    }
}
