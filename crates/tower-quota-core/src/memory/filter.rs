//! Remembers the limits that were spent when their row was evicted.
//!
//! The filter is a table of cells in sets of 32. A cell has the fingerprint of a limit, and the instant until which the
//! limit is spent. A limit with a full set overwrites the cell that ends first. One new key in 8,192 has the fingerprint
//! of a remembered key.

use core::ops::Range;

const CELLS: usize = 32;
/// The number of cells for each row of the shard. The filter loses no limit until two fifths of the
/// cells are used.
const CELLS_PER_ROW: usize = 3;
const PRINT_BITS: u32 = 18;
const PRINT: u64 = (1 << PRINT_BITS) - 1;
/// The filter keeps instants in steps of 128 microseconds, rounded down.
const STEP_BITS: u32 = 7;

/// The spent limits of evicted rows. A cell is an instant (46 bits) and a fingerprint (18 bits).
#[derive(Default)]
pub(super) struct EvictedFilter {
    cells: Box<[u64]>,
}

impl EvictedFilter {
    pub(super) fn remember(&mut self, limit: (u64, u32), until: u64, now: u64, rows: usize) {
        if self.cells.is_empty() {
            self.cells = vec![0; (rows * CELLS_PER_ROW).next_multiple_of(CELLS)].into();
        }
        let (print, set) = self.place(limit);
        let new = (until >> STEP_BITS) << PRINT_BITS | print;
        // Choose the cell of the limit, or a free cell, or the cell that ends first.
        let is_own = |cell: u64| cell & PRINT == print && until_of(cell) > now;
        let cost = |cell: &&mut u64| (!is_own(**cell), until_of(**cell).max(now));
        if let Some(cell) = self.cells[set].iter_mut().min_by_key(cost) {
            *cell = new;
        }
    }

    pub(super) fn until(&self, limit: (u64, u32), now: u64) -> Option<u64> {
        let (print, set) = self.place(limit);
        let cells = self.cells[set].iter();
        let own = cells.filter(|cell| **cell & PRINT == print);
        own.map(|cell| until_of(*cell)).find(|until| *until > now)
    }

    pub(super) fn forget(&mut self, limit: (u64, u32)) {
        let (print, set) = self.place(limit);
        for cell in &mut self.cells[set] {
            if *cell & PRINT == print {
                *cell = 0;
            }
        }
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    fn place(&self, (hash, limit): (u64, u32)) -> (u64, Range<usize>) {
        // Hashes of a shard share some bits. A product with an odd factor brings the other bits to
        // the top.
        let mixed = (hash ^ u64::from(limit)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let sets = (self.cells.len() / CELLS) as u64;
        let first = CELLS * (((mixed >> 32) * sets) >> 32) as usize;
        (mixed & PRINT, first..first + CELLS.min(self.cells.len()))
    }
}

const fn until_of(cell: u64) -> u64 {
    (cell >> PRINT_BITS) << STEP_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_763_683_200_000_000;

    fn hash(number: u64) -> u64 {
        (number + 1).wrapping_mul(0xd134_2543_de82_ef95)
    }

    #[test]
    fn remembered_limit_is_found_until_its_instant() {
        let mut filter = EvictedFilter::default();
        assert_eq!(filter.until((hash(1), 7), NOW), None);
        filter.remember((hash(1), 7), NOW + 1_000_000, NOW, 100);
        let until = filter.until((hash(1), 7), NOW).unwrap();
        assert!((NOW + 1_000_000 - 127..=NOW + 1_000_000).contains(&until));
        assert_eq!(filter.until((hash(1), 7), NOW + 1_000_000), None);
        assert_eq!(filter.until((hash(1), 8), NOW), None);
        filter.forget((hash(1), 7));
        assert_eq!(filter.until((hash(1), 7), NOW), None);
    }

    #[test]
    fn full_filter_keeps_what_lasts_longest() {
        let mut filter = EvictedFilter::default();
        let rows = 64;
        for number in 0..2_000 {
            filter.remember((hash(number), 7), NOW + 1_000 * (1 + number), NOW, rows);
        }
        let kept = |numbers: core::ops::Range<u64>| {
            numbers
                .filter(|number| filter.until((hash(*number), 7), NOW).is_some())
                .count()
        };
        assert!(kept(1_950..2_000) >= 45, "{}", kept(1_950..2_000));
        assert!(kept(0..1_500) <= 20, "{}", kept(0..1_500));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand look-ups")]
    fn new_key_is_seldom_mistaken() {
        let mut filter = EvictedFilter::default();
        let rows = 1_000;
        (0..2_000)
            .for_each(|number| filter.remember((hash(number), 7), NOW + 1_000_000, NOW, rows));
        let found = (0..2_000)
            .filter(|number| filter.until((hash(*number), 7), NOW).is_some())
            .count();
        assert!(found > 1_900, "{found} of 2000 remembered");
        let mistaken = (10_000..110_000)
            .filter(|number| filter.until((hash(*number), 7), NOW).is_some())
            .count();
        assert!(mistaken < 20, "{mistaken} of 100000");
    }
}
