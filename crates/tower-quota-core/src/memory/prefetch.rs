//! Where a table's rows are, so that the processor fetches them before the table is locked.
//!
//! With a million entries a check waits for its row longer than for everything else. A processor runs ahead only some
//! three hundred instructions. With the address of the row known early, it also fetches that of the next check while it
//! still waits for this one's.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::bucket::Bucket;
use super::fetch::prefetch;
use super::table::{Buckets, Table, first_home};

/// Bytes that come at once.
const LINE: usize = 64;

/// Where a table's buckets were when it was last rewritten. It may be out of date, or half of it: then something else
/// is fetched in vain.
#[derive(Default)]
pub(super) struct Prefetch {
    start: AtomicPtr<i8>,
    buckets: AtomicUsize,
    /// Bytes of a bucket.
    size: AtomicUsize,
}

impl Prefetch {
    /// Notes where a table's buckets are.
    pub(super) fn update(&self, table: &Table) {
        let (start, buckets, size) = match &table.buckets {
            Buckets::Narrow(buckets) => place_of(buckets),
            Buckets::Wide(buckets) => place_of(buckets),
        };
        // Written only when it has changed, since every check reads it.
        let known = (self.start.load(Ordering::Relaxed).cast_const(), self.buckets.load(Ordering::Relaxed));
        if known != (start, buckets) || self.size.load(Ordering::Relaxed) != size {
            self.start.store(start.cast_mut(), Ordering::Relaxed);
            self.buckets.store(buckets, Ordering::Relaxed);
            self.size.store(size, Ordering::Relaxed);
        }
    }

    /// Fetches the lines of an entry's first bucket, whose rows have so many words.
    #[inline]
    pub(super) fn fetch<const W: usize>(&self, hash: u64) {
        let (address, last) = (self.address(hash), size_of::<Bucket<W>>() - 1);
        // A bucket begins at a line or in the middle of one: only the last byte says how many lines there are.
        (0..last - LINE / 2).step_by(LINE).for_each(|byte| prefetch(address.wrapping_add(byte)));
        prefetch(address.wrapping_add(last));
    }

    /// Returns where an entry's first bucket is.
    #[inline]
    fn address(&self, hash: u64) -> *const i8 {
        let bucket = first_home(hash, self.buckets.load(Ordering::Relaxed));
        self.start.load(Ordering::Relaxed).wrapping_add(bucket * self.size.load(Ordering::Relaxed))
    }
}

/// Returns where buckets begin, how many they are, and the bytes of each.
fn place_of<const W: usize>(buckets: &[Bucket<W>]) -> (*const i8, usize, usize) {
    (buckets.as_ptr().cast(), buckets.len(), size_of::<Bucket<W>>())
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::memory::capacity::Capacity;
    use crate::memory::insert::Scene;

    #[test]
    fn address_follows_growing_table() {
        let (mut table, capacity, prefetch) = (Table::default(), Capacity::new(200, 1), Prefetch::default());
        let scene = Scene { now: 0, capacity: &capacity, together: &[] };
        for number in 1..=200 {
            if number == 100 {
                table.widen(&scene);
            }
            let hash = u64::wrapping_mul(number, 0x9e37_79b9_7f4a_7c15);
            assert!(table.place(hash, &scene).is_some());
            prefetch.update(&table);
            let [first, _] = table.homes(hash);
            let bucket: *const i8 = match &table.buckets {
                Buckets::Narrow(buckets) => core::ptr::from_ref(&buckets[first]).cast(),
                Buckets::Wide(buckets) => core::ptr::from_ref(&buckets[first]).cast(),
            };
            assert_eq!(prefetch.address(hash), bucket, "{number}");
        }
    }
}
