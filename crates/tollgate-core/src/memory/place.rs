//! A row for a newcomer.

use smallvec::SmallVec;

use super::room::Room;
use super::table::{ROWS, Table};

/// Rows looked at for one whose subject can move on to a free one: eight in two buckets, four more for each of these,
/// and four more for each of those.
const PATHS: usize = 8 + 8 * 4 + 8 * 4 * 4;
/// How often a table is made larger for one newcomer, before he stays without a row.
const ATTEMPTS: usize = 8;

/// A row on the way from a newcomer's bucket to a free row.
#[derive(Clone, Copy, Default)]
struct Step {
    position: usize,
    /// The step before, in whose subject's other bucket this row is.
    before: Option<usize>,
}

impl Table {
    /// Gives a row to a newcomer who has a place. `None` when no table of any reasonable size has one.
    pub(super) fn settle(&mut self, hash: u64, room: &Room) -> Option<usize> {
        for attempt in 0..ATTEMPTS {
            let is_crowded = self.len() < full_size(room) && (self.taken() + 1) * 16 > self.rows() * 15;
            if !is_crowded && let Some(position) = self.free_row(hash) {
                self.begin(position, hash);
                return Some(position);
            }
            self.grow(room, attempt);
        }
        None
    }

    /// Makes the rows wide, for up to four limits.
    pub(super) fn widen(&mut self) {
        for attempt in 0..ATTEMPTS {
            let buckets = (self.len() + attempt).max(1);
            if self.rewrite(buckets, true) {
                return;
            }
        }
    }

    /// Doubles the table until it is as large as it will have to be when the store is full, and then goes on in small
    /// steps, so that few rows are free in a full store.
    fn grow(&mut self, room: &Room, attempt: usize) {
        let (buckets, full) = (self.len(), full_size(room));
        let larger = match buckets {
            0 => 1,
            _ if buckets * 2 <= full / 4 * 3 => buckets * 2,
            _ if buckets < full => full,
            // A little more each time: subjects that do not all find a row in one size do in another.
            _ => buckets + buckets / 16 + 1 + attempt,
        };
        self.rewrite(larger, self.is_wide());
    }

    /// Writes the table anew. Leaves it as it was when its subjects do not all find a row.
    fn rewrite(&mut self, buckets: usize, is_wide: bool) -> bool {
        let mut larger = Self::empty(buckets, is_wide);
        for row in (0..self.rows()).map(|position| self.row(position)).filter(|row| !row.is_free()) {
            let Some(position) = larger.free_row(row.hash()) else { return false };
            larger.row_mut(position).copy(row);
        }
        self.move_into(larger);
        true
    }

    /// A free row in one of a newcomer's buckets, made free if need be.
    fn free_row(&mut self, hash: u64) -> Option<usize> {
        if self.len() == 0 {
            return None;
        }
        let homes = self.homes(hash);
        homes.into_iter().find_map(|bucket| self.free_in(bucket)).or_else(|| self.make_free(homes))
    }

    fn free_in(&self, bucket: usize) -> Option<usize> {
        rows_of(bucket).find(|&position| self.row(position).is_free())
    }

    /// Breadth first, so that as few move as can be, and none twice.
    fn make_free(&mut self, homes: [usize; 2]) -> Option<usize> {
        let mut steps: SmallVec<[Step; 64]> = SmallVec::new();
        steps.extend(homes.into_iter().flat_map(rows_of).map(|position| Step { position, before: None }));
        let mut next = 0;
        while let Some(&Step { position, .. }) = steps.get(next) {
            let homes = self.homes(self.row(position).hash());
            let other = if homes[0] == position / ROWS { homes[1] } else { homes[0] };
            if let Some(free) = self.free_in(other) {
                return Some(self.move_along(&steps, next, free));
            }
            let room = PATHS - steps.len();
            steps.extend(rows_of(other).take(room).map(|position| Step { position, before: Some(next) }));
            next += 1;
        }
        None
    }

    /// Moves the subject of a step to a free row, the one of the step before into its row, and so on. The row that is free
    /// then.
    fn move_along(&mut self, steps: &[Step], last: usize, mut free: usize) -> usize {
        let mut step = Some(last);
        while let Some(Step { position, before }) = step.and_then(|step| steps.get(step)) {
            self.move_row(*position, free);
            (free, step) = (*position, *before);
        }
        free
    }
}

/// The positions of a bucket's rows.
fn rows_of(bucket: usize) -> core::ops::Range<usize> {
    bucket * ROWS..(bucket + 1) * ROWS
}

/// Buckets of a table of a full store, 15 of 16 rows in use.
const fn full_size(room: &Room) -> usize {
    (room.share() * 16 / 15).div_ceil(ROWS)
}
