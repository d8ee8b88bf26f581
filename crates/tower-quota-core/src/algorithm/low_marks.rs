//! The low marks of a bucket, which make refunds exact.
//!
//! Without the charge, a part of the refill would have been lost to a full bucket. A refund therefore gives back at
//! most the lowest number of used grains since the charge. A mark records this number. A change merges all marks
//! above the present level.
//!
//! A full list drops the mark closest to its predecessor. A refund of that charge gives back a little less. The
//! marks start again when the bucket was full or converted to another quota.

use crate::bytes::{push_u56, read_u56};
use crate::quota::MOST_USED;

/// The maximum number of marks of a bucket.
pub const MOST_MARKS: usize = 8;

/// The marks, as instants in microseconds and the lowest numbers of used grains since. Both grow
/// from mark to mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LowMarks(Vec<(u64, u64)>);

impl LowMarks {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u64, u64)>()
    }

    pub(super) fn note(&mut self, used: u64) {
        let first = self.0.partition_point(|&(_, low)| low < used);
        self.0.truncate(first + 1);
        if let Some((_, low)) = self.0.get_mut(first) {
            *low = used;
        }
    }

    pub(super) fn add(&mut self, since: u64, low: u64) {
        match self.0.last_mut() {
            Some(last) if last.1 == low => return,
            Some(last) if last.0 == since => last.1 = low,
            _ => self.0.push((since, low)),
        }
        if self.0.len() > MOST_MARKS {
            // The first mark is compared with 0.
            let before = |mark: usize| mark.checked_sub(1).map_or(0, |before| self.0[before].1);
            let closest = (0..self.0.len()).min_by_key(|&mark| self.0[mark].1 - before(mark));
            closest.map(|mark| self.0.remove(mark));
        }
    }

    pub(super) fn since(&self, instant: u64) -> Option<u64> {
        self.0[..self.begun_by(instant)].last().map(|&(_, low)| low)
    }

    pub(super) fn refund(&mut self, instant: u64, grains: u64) {
        let first = self.begun_by(instant).saturating_sub(1);
        for (_, low) in &mut self.0[first..] {
            *low = low.saturating_sub(grains);
        }
        if let Some(&(_, least)) = self.0.get(first) {
            for (_, low) in &mut self.0[..first] {
                *low = least.min(*low);
            }
        }
        self.0.dedup_by_key(|&mut (_, low)| low);
    }

    fn begun_by(&self, instant: u64) -> usize {
        self.0.partition_point(|&(since, _)| since <= instant)
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        for &(since, low) in &self.0 {
            push_u56(bytes, since);
            push_u56(bytes, low);
        }
    }

    pub(super) fn decode(bytes: &mut &[u8], at: u64) -> Option<Self> {
        let mut marks = Vec::new();
        while !bytes.is_empty() {
            marks.push((read_u56(bytes)?, read_u56(bytes)?));
        }
        let is_sound = marks.len() <= MOST_MARKS
            && marks
                .iter()
                .all(|&(since, low)| since <= at && low <= MOST_USED)
            && marks.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1);
        is_sound.then_some(Self(marks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(marks: &LowMarks, instants: &[u64]) -> Vec<Option<u64>> {
        instants
            .iter()
            .map(|&instant| marks.since(instant))
            .collect()
    }

    #[test]
    fn marks_hold_the_least_since_their_charges() {
        let mut marks = LowMarks::default();
        for (now, before, after) in [(10, 0, 5), (20, 3, 7), (20, 7, 9), (30, 6, 8)] {
            marks.note(before);
            marks.add(now, after);
        }
        assert_eq!(
            since(&marks, &[9, 10, 19, 20, 29, 30, 40]),
            [None, Some(3), Some(3), Some(6), Some(6), Some(8), Some(8)]
        );
        marks.note(4);
        assert_eq!(since(&marks, &[10, 20, 30]), [Some(3), Some(4), Some(4)]);
    }

    #[test]
    fn refund_lowers_the_marks_after_its_charge() {
        let mut marks = LowMarks::default();
        for (now, used) in [(10, 5), (20, 7), (30, 9)] {
            marks.add(now, used);
        }
        marks.refund(20, 2);
        assert_eq!(since(&marks, &[10, 20, 30]), [Some(5), Some(5), Some(7)]);
        marks.refund(30, 3);
        assert_eq!(since(&marks, &[10, 20, 30]), [Some(4), Some(4), Some(4)]);
    }

    #[test]
    fn mark_that_says_least_goes() {
        let mut marks = LowMarks::default();
        for number in 1..=MOST_MARKS as u64 {
            marks.add(10 * number, 100 * number);
        }
        marks.add(90, 850);
        assert_eq!(since(&marks, &[80, 90]), [Some(800), Some(800)]);
        // Two marks are equally close, so the first one is dropped.
        marks.add(100, 1_000);
        assert_eq!(
            since(&marks, &[10, 20, 100]),
            [None, Some(200), Some(1_000)]
        );
        assert_eq!(marks.0.len(), MOST_MARKS);
    }
}
