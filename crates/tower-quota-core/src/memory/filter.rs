//! The evicted filter: limits that were spent when their entry was evicted, each until one unit fits again.
//!
//! It is a table of fingerprints with an instant each, in sets of eight. A limit of a key belongs to one of two sets, as
//! in a cuckoo filter (Fan, Andersen, Kaminsky and Mitzenmacher, 2014), but no cell is moved. If both sets are full, the
//! cell that ends first is overwritten. That does not happen until 3 in 5 cells are used; 1 limit in 24 is lost by the
//! time there are as many as cells. A new key is mistaken for an evicted one at most 1 time in 16,000, and never for
//! longer than that one had to wait.

/// Cells of a set: a cache line.
const CELLS: usize = 8;
/// Cells for every row that the table has when it first needs them.
const CELLS_PER_ROW: usize = 2;
/// Bits of a fingerprint: the low ones of a cell.
const PRINT_BITS: u32 = 18;
const PRINT: u64 = (1 << PRINT_BITS) - 1;
/// An instant is kept in steps of 128 microseconds, rounded down.
const STEP_BITS: u32 = 7;
/// Microseconds by which a remembered instant may be too early.
pub(super) const STEP: u64 = 1 << STEP_BITS;

/// Spent limits of evicted entries. A cell is an instant (46 bits) and a fingerprint (18 bits); 0 is a free one.
#[derive(Default)]
pub(super) struct EvictedFilter {
    /// None until the first limit.
    sets: Box<[[u64; CELLS]]>,
}

impl EvictedFilter {
    /// Remembers the instant until which a limit of a key is spent. `rows` is the number of rows of the table.
    pub(super) fn remember(
        &mut self,
        (hash, limit): (u64, u32),
        until: u64,
        now: u64,
        rows: usize,
    ) {
        if self.sets.is_empty() {
            self.sets = vec![[0; CELLS]; (rows * CELLS_PER_ROW).div_ceil(CELLS)].into();
        }
        let (print, sets) = self.place(hash, limit);
        let cell = (until >> STEP_BITS) << PRINT_BITS | print;
        let cells = || {
            sets.into_iter()
                .flat_map(|set| (0..CELLS).map(move |at| (set, at)))
        };
        let live = |set: usize, at: usize| {
            if until_of(self.sets[set][at]) > now {
                self.sets[set][at]
            } else {
                0
            }
        };
        let same =
            cells().find(|&(set, at)| live(set, at) != 0 && self.sets[set][at] & PRINT == print);
        // A free cell of the emptier set, or else the cell that ends first.
        let used = sets.map(|set| (0..CELLS).filter(|at| live(set, *at) != 0).count());
        let cost = |&(set, at): &(usize, usize)| {
            (
                live(set, at),
                if set == sets[0] { used[0] } else { used[1] },
            )
        };
        let Some((set, at)) = same.or_else(|| cells().min_by_key(cost)) else {
            return;
        };
        self.sets[set][at] = live(set, at).max(cell);
    }

    /// Returns the instant until which a limit of a key is spent; `None` if it is not spent at `now`.
    pub(super) fn until(&self, (hash, limit): (u64, u32), now: u64) -> Option<u64> {
        if self.sets.is_empty() {
            return None;
        }
        let (print, sets) = self.place(hash, limit);
        let cells = sets.into_iter().flat_map(|set| self.sets[set]);
        cells
            .filter(|cell| cell & PRINT == print)
            .map(until_of)
            .find(|until| *until > now)
    }

    /// Forgets a limit of a key, which is counted in a row from here on.
    pub(super) fn forget(&mut self, (hash, limit): (u64, u32)) {
        if self.sets.is_empty() {
            return;
        }
        let (print, sets) = self.place(hash, limit);
        for set in sets {
            self.sets[set]
                .iter_mut()
                .filter(|cell| **cell & PRINT == print)
                .for_each(|cell| *cell = 0);
        }
    }

    /// Returns the bytes that the filter takes.
    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// Returns the fingerprint of a limit of a key, and the sets it may be in.
    fn place(&self, hash: u64, limit: u32) -> (u64, [usize; 2]) {
        // Some of the hash's own bits have chosen the table: a product by an odd factor brings the others to the top.
        let mixed = (hash ^ u64::from(limit)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let set =
            |bits: u64| (((bits & 0xffff_ffff) as u128 * self.sets.len() as u128) >> 32) as usize;
        (
            mixed & PRINT,
            [
                set(mixed >> 32),
                set(mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 32),
            ],
        )
    }
}

/// Returns the instant of a cell.
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
