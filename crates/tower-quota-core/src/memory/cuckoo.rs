//! Rows for new entries, made by moving others to their other bucket or by making the table larger.

use smallvec::SmallVec;

use super::bucket::{ROWS, TableBucket};
use super::capacity::Capacity;
use super::insert::WriteContext;
use super::row::{NARROW, Row, WIDE};
use super::table::{Buckets, Table, either, first_home};

/// The rows considered for a path to a free row.
///
/// They are the ten of two buckets, five more for each of these, and five more for each of those.
const PATHS: usize = 2 * ROWS * (1 + ROWS + ROWS * ROWS);
/// Times that a table may be made larger for one new entry.
const ATTEMPTS: usize = 8;

/// Buckets for which memory is reserved at most.
const MOST_RESERVED: usize = 1 << 12;

/// A row on the way from a new entry's bucket to a free row.
#[derive(Clone, Copy, Default)]
struct Step {
    position: usize,
    /// The step before. This row is in the other bucket of that step's entry.
    before: Option<usize>,
}

impl Table {
    /// Gives a row to a new entry that has a place. Returns `None` if the table may not grow any further.
    pub(super) fn give_row(&mut self, hash: u64, context: &WriteContext<'_>) -> Option<usize> {
        for _ in 0..ATTEMPTS {
            let is_crowded = self.len() < self.full_size(context.capacity)
                && (self.taken() + 1) * 5 > self.rows() * 4;
            if !is_crowded && let Some(position) = self.free_row(hash) {
                self.begin(position, hash);
                return Some(position);
            }
            // Full entries lose nothing. If few are found, a larger table is cheaper than the next search.
            if self.reclaim(context) * ROWS < self.rows().max(1) {
                self.rewrite(
                    self.larger(context.capacity)?,
                    self.is_wide(),
                    context.capacity,
                );
            }
        }
        None
    }

    /// Makes the rows wide, for up to four limits.
    pub(super) fn widen(&mut self, context: &WriteContext<'_>) {
        self.rewrite(self.len().max(1), true, context.capacity);
    }

    /// Returns the next size, if there is one.
    ///
    /// The size doubles until it is that of a full store. It then grows in small steps, up to twice that, for a table
    /// that has more than its share of the entries.
    fn larger(&self, capacity: &Capacity) -> Option<usize> {
        let (buckets, full) = (self.len(), self.full_size(capacity));
        match buckets {
            0 => Some(if cfg!(loom) { 1 } else { 2.min(full) }),
            _ if buckets >= 2 * full => None,
            _ if buckets >= full => Some(buckets + buckets / 32 + 1),
            _ if buckets * 2 > full / 4 * 3 => Some(full),
            _ => Some(buckets * 2),
        }
    }

    const fn full_size(&self, capacity: &Capacity) -> usize {
        full_size(self.is_wide(), capacity)
    }

    /// Rewrites the table with this many buckets, or with more if some entry finds no row in them.
    fn rewrite(&mut self, buckets: usize, is_wide: bool, capacity: &Capacity) {
        let width = if self.is_wide() { WIDE } else { NARROW };
        let held = self.renew(buckets, is_wide, reserved(is_wide, capacity));
        for _ in 0..ATTEMPTS {
            if held
                .chunks_exact(width)
                .all(|words| self.restore(Row(words)))
            {
                return;
            }
            let Some(larger) = self.larger(capacity) else {
                break;
            };
            self.renew(larger, is_wide, 0);
        }
        // No client can choose keys that share both their buckets in tables of all these sizes.
        let lost = held
            .chunks_exact(width)
            .filter(|words| self.find(Row(words).hash()).is_none() && !self.restore(Row(words)));
        let lost = lost.count();
        self.lose(lost, capacity);
    }

    /// Copies a row that was in use before.
    fn restore(&mut self, row: Row<'_>) -> bool {
        let is_at_home = either!(&mut self.buckets, buckets => restore_at_home(buckets, row));
        is_at_home
            || self
                .free_row(row.hash())
                .map(|position| self.copy_row(position, row))
                .is_some()
    }

    /// Returns a free row in one of a key's buckets, and frees one if there is none.
    fn free_row(&mut self, hash: u64) -> Option<usize> {
        if self.len() == 0 {
            return None;
        }
        let home = first_home(hash, self.len());
        self.free_in(home)
            .or_else(|| self.free_elsewhere(self.homes(hash)))
    }

    #[inline(never)]
    fn free_elsewhere(&mut self, homes: [usize; 2]) -> Option<usize> {
        self.free_in(homes[1]).or_else(|| self.make_free(homes))
    }

    fn free_in(&self, bucket: usize) -> Option<usize> {
        let row = either!(&self.buckets, buckets => buckets[bucket].free());
        row.map(|row| bucket * ROWS + row)
    }

    /// Frees a row by moving entries to their other bucket.
    ///
    /// The search is breadth first, so that the fewest possible entries move, and none twice.
    fn make_free(&mut self, homes: [usize; 2]) -> Option<usize> {
        let mut steps: SmallVec<[Step; 256]> = SmallVec::new();
        steps.extend(homes.into_iter().flat_map(rows_of).map(|position| Step {
            position,
            before: None,
        }));
        let mut next = 0;
        while let Some(&Step { position, .. }) = steps.get(next) {
            let homes = self.homes(self.row(position).hash());
            let other = if homes[0] == position / ROWS {
                homes[1]
            } else {
                homes[0]
            };
            if let Some(free) = self.free_in(other) {
                return Some(self.move_along(&steps, next, free));
            }
            let room = PATHS - steps.len();
            steps.extend(rows_of(other).take(room).map(|position| Step {
                position,
                before: Some(next),
            }));
            next += 1;
        }
        None
    }

    /// Moves the entry of each step into the row that the next step has freed.
    ///
    /// Returns the row that is free at the end.
    fn move_along(&mut self, steps: &[Step], last: usize, mut free: usize) -> usize {
        let mut step = Some(last);
        while let Some(Step { position, before }) = step.and_then(|step| steps.get(step)) {
            self.move_row(*position, free);
            (free, step) = (*position, *before);
        }
        free
    }
}

/// Copies a row of the same width into its first bucket, if that has a free one.
#[inline]
fn restore_at_home<const W: usize>(buckets: &mut [TableBucket<W>], row: Row<'_>) -> bool {
    let home = first_home(row.hash(), buckets.len());
    let (Ok(words), Some(bucket)) = (row.0.try_into(), buckets.get_mut(home)) else {
        return false;
    };
    bucket.free().map(|free| bucket.put(free, words)).is_some()
}

/// Returns the positions of a bucket's rows.
fn rows_of(bucket: usize) -> core::ops::Range<usize> {
    bucket * ROWS..(bucket + 1) * ROWS
}

/// Returns the buckets of a table of a full store.
///
/// The more rows are free, the more entries are in the first of their buckets. Of narrow rows 76 of 100 are in use. Of
/// wide ones, which are larger, it is 85 of 100.
const fn full_size(is_wide: bool, capacity: &Capacity) -> usize {
    let percent = if is_wide { 85 } else { 76 };
    (capacity.share * 100 / percent).div_ceil(ROWS) + 1
}

/// Returns the buckets for which memory is reserved: those of a full store and a small step more.
///
/// No memory is reserved if a table's share is so large that it may never be used.
const fn reserved(is_wide: bool, capacity: &Capacity) -> usize {
    match full_size(is_wide, capacity) {
        full if full > MOST_RESERVED => 0,
        full => full + full / 32 + 1,
    }
}
