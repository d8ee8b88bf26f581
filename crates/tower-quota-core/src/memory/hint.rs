//! Where a table's rows are, for the processor to fetch them before the table is locked.
//!
//! With a million subjects a check waits for its row longer than it takes for all else. A processor fetches ahead only as
//! far as it sees: some three hundred steps. Told of the row as soon as its place is known, it sees that of the next check
//! while it still waits for this one's.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::bucket::Bucket;
use super::table::{Buckets, Table, first_home};

/// Bytes that come at once.
const LINE: usize = 64;

/// Where a table's buckets were when it was last written anew. It may be out of date, or half of it: then something else
/// is fetched that nobody needs.
#[derive(Default)]
pub(super) struct Hint {
    start: AtomicPtr<i8>,
    buckets: AtomicUsize,
    /// Bytes of a bucket.
    size: AtomicUsize,
}

impl Hint {
    /// Takes note of where a table's buckets are.
    pub(super) fn update(&self, table: &Table) {
        let (start, buckets, size) = match &table.buckets {
            Buckets::Narrow(buckets) => place_of(buckets),
            Buckets::Wide(buckets) => place_of(buckets),
        };
        // Written only when it is another, since all who come read it.
        let known = (self.start.load(Ordering::Relaxed).cast_const(), self.buckets.load(Ordering::Relaxed));
        if known != (start, buckets) || self.size.load(Ordering::Relaxed) != size {
            self.start.store(start.cast_mut(), Ordering::Relaxed);
            self.buckets.store(buckets, Ordering::Relaxed);
            self.size.store(size, Ordering::Relaxed);
        }
    }

    /// Has the first so many lines of a subject's first bucket fetched.
    #[inline]
    pub(super) fn fetch<const LINES: usize>(&self, hash: u64) {
        let address = self.address(hash);
        (0..LINES).for_each(|line| fetch(address.wrapping_add(line * LINE)));
    }

    /// Where a subject's first bucket is.
    #[inline]
    fn address(&self, hash: u64) -> *const i8 {
        let bucket = first_home(hash, self.buckets.load(Ordering::Relaxed));
        self.start.load(Ordering::Relaxed).wrapping_add(bucket * self.size.load(Ordering::Relaxed))
    }
}

/// Where buckets begin, how many they are, and the bytes of each.
fn place_of<const W: usize>(buckets: &[Bucket<W>]) -> (*const i8, usize, usize) {
    (buckets.as_ptr().cast(), buckets.len(), size_of::<Bucket<W>>())
}

/// Has a line fetched.
#[inline]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "the processor is told something that has no safe name")]
fn fetch(address: *const i8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: this is a hint. It reads nothing that the program sees, writes nothing, and is ignored by the processor where
    // the address belongs to nobody ("Intel 64 and IA-32 Architectures Software Developer's Manual", PREFETCHh; "AMD64
    // Architecture Programmer's Manual", volume 3, PREFETCHlevel). Every x86-64 processor has it.
    unsafe { _mm_prefetch(address, _MM_HINT_T0) }
}

/// Elsewhere there is no such hint.
#[inline]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
const fn fetch(_: *const i8) {}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::memory::known::Known;
    use crate::memory::room::Room;
    use crate::time::Timestamp;

    #[test]
    fn it_is_where_the_buckets_are_however_the_table_grows() {
        let (mut table, room, known, hint) = (Table::default(), Room::new(200, 1), Known::new(), Hint::default());
        for number in 1..=200 {
            if number == 100 {
                table.widen(&room);
            }
            let hash = u64::MAX / 200 * number;
            assert!(table.place(hash, Timestamp::EPOCH, (&room, &known), &[]).is_some());
            hint.update(&table);
            let [first, _] = table.homes(hash);
            let bucket: *const i8 = match &table.buckets {
                Buckets::Narrow(buckets) => core::ptr::from_ref(&buckets[first]).cast(),
                Buckets::Wide(buckets) => core::ptr::from_ref(&buckets[first]).cast(),
            };
            assert_eq!(hint.address(hash), bucket, "{number}");
        }
    }
}
