//! Addresses of the tables' rows, so that the processor fetches a row before its table is locked.
//!
//! With a million entries, a check spends most of its time waiting for its row. A processor runs ahead only some three
//! hundred instructions. If it knows the address early, it fetches the row of the next check while it still waits for
//! this one.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::bucket::TableBucket;
use super::fetch::prefetch;
use super::table::{Buckets, Table, either, first_home};

/// Bytes of a cache line.
const LINE: usize = 64;

/// The address of a table's buckets after it was last rewritten.
///
/// It may be out of date, in part too. Then an unneeded line is fetched, and nothing else happens.
#[derive(Default)]
pub(super) struct Prefetch {
    start: AtomicPtr<i8>,
    buckets: AtomicUsize,
    /// Bytes of a bucket.
    size: AtomicUsize,
}

impl Prefetch {
    /// Notes the address of a table's buckets.
    pub(super) fn update(&self, table: &Table) {
        let (start, buckets, size) = either!(&table.buckets, buckets => place_of(buckets));
        // Written only when it has changed, since every check reads it.
        let known = (
            self.start.load(Ordering::Relaxed).cast_const(),
            self.buckets.load(Ordering::Relaxed),
        );
        if known != (start, buckets) || self.size.load(Ordering::Relaxed) != size {
            self.start.store(start.cast_mut(), Ordering::Relaxed);
            self.buckets.store(buckets, Ordering::Relaxed);
            self.size.store(size, Ordering::Relaxed);
        }
    }

    /// Fetches the lines of an entry's first bucket. Its rows have `W` words.
    #[inline]
    pub(super) fn fetch<const W: usize>(&self, hash: u64) {
        let (address, last) = (self.address(hash), size_of::<TableBucket<W>>() - 1);
        // A bucket begins at a line or in the middle of one: only the last byte says how many lines there are.
        (0..last - LINE / 2)
            .step_by(LINE)
            .for_each(|byte| prefetch(address.wrapping_add(byte)));
        prefetch(address.wrapping_add(last));
    }

    /// Returns the address of an entry's first bucket.
    #[inline]
    fn address(&self, hash: u64) -> *const i8 {
        let bucket = first_home(hash, self.buckets.load(Ordering::Relaxed));
        self.start
            .load(Ordering::Relaxed)
            .wrapping_add(bucket * self.size.load(Ordering::Relaxed))
    }
}

/// Returns the address of the first bucket, the number of buckets, and the bytes of each.
fn place_of<const W: usize>(buckets: &[TableBucket<W>]) -> (*const i8, usize, usize) {
    (
        buckets.as_ptr().cast(),
        buckets.len(),
        size_of::<TableBucket<W>>(),
    )
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::memory::capacity::Capacity;
    use crate::memory::insert::WriteContext;

    #[test]
    fn address_follows_growing_table() {
        let (mut table, capacity, prefetch) =
            (Table::default(), Capacity::new(200, 1), Prefetch::default());
        let context = WriteContext {
            now: 0,
            capacity: &capacity,
            together: &[],
        };
        for number in 1..=200 {
            if number == 100 {
                table.widen(&context);
            }
            let hash = u64::wrapping_mul(number, 0x9e37_79b9_7f4a_7c15);
            assert!(table.place(hash, &context).is_some());
            prefetch.update(&table);
            let [first, _] = table.homes(hash);
            let bucket: *const i8 =
                either!(&table.buckets, buckets => core::ptr::from_ref(&buckets[first]).cast());
            assert_eq!(prefetch.address(hash), bucket, "{number}");
        }
    }
}
