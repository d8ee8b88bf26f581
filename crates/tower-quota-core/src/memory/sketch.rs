//! How often evicted keys were used.
//!
//! A client that comes back after its eviction continues with its former uses. A busy client is therefore evicted a few
//! times at most before its uses exceed those of made-up keys, as in TinyLFU (Einziger, Friedman and Manes, 2017). The
//! sketch keeps fingerprints and not only counters, so that made-up keys do not inherit each other's uses.

/// Cells for each row of the shard.
const CELLS_PER_ROW: usize = 2;

/// The uses of evicted keys.
#[derive(Default)]
pub(super) struct UseSketch(Box<[Cell]>);

#[derive(Clone, Copy, Default)]
struct Cell {
    fingerprint: u16,
    uses: u8,
}

impl UseSketch {
    /// Remembers the uses of an evicted key. `rows` is the number of rows of the shard.
    pub(super) fn remember(&mut self, hash: u64, uses: u8, rows: usize) {
        if self.0.is_empty() {
            self.0 = vec![Cell::default(); rows * CELLS_PER_ROW].into();
        }
        let fingerprint = fingerprint(hash);
        let [one, other] = self.positions(hash);
        // The key's own cell, or the one of the two that was used less.
        let is_own = |position: usize| self.0[position].fingerprint == fingerprint;
        let position = match is_own(one) || !is_own(other) && self.0[one].uses <= self.0[other].uses
        {
            true => one,
            false => other,
        };
        let cell = &mut self.0[position];
        if cell.uses <= uses || cell.fingerprint == fingerprint {
            *cell = Cell { fingerprint, uses };
        } else {
            // By an eighth, so that a client who was busy long ago leaves soon, and a flood of new keys wears a busy one down
            // slowly.
            cell.uses -= cell.uses.div_ceil(8);
        }
    }

    /// Returns the uses of a key when it was evicted, or 0. One new key in 32,768 gets the uses of another key.
    pub(super) fn uses(&self, hash: u64) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        let cells = self.positions(hash).map(|position| self.0[position]);
        let own = cells
            .iter()
            .find(|cell| cell.fingerprint == fingerprint(hash));
        own.map_or(0, |cell| cell.uses)
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn positions(&self, hash: u64) -> [usize; 2] {
        let halves = [hash & 0xffff_ffff, hash >> 32];
        halves.map(|half| {
            let mixed = half.wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
            ((mixed * self.0.len() as u64) >> 32) as usize
        })
    }
}

fn fingerprint(hash: u64) -> u16 {
    let [first, second, ..] = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    u16::from_be_bytes([first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn evicted_key_keeps_its_uses() {
        let mut sketch = UseSketch::default();
        assert_eq!(sketch.uses(hash(1)), 0);
        for number in 0..1_000 {
            sketch.remember(hash(number), 9, 1_000);
        }
        let kept = (0..1_000)
            .filter(|&number| sketch.uses(hash(number)) == 9)
            .count();
        assert!(kept > 800, "{kept} of 1000");
    }

    #[test]
    fn new_key_seldom_inherits_uses() {
        let mut sketch = UseSketch::default();
        for number in 0..100_000 {
            sketch.remember(hash(number), 2, 1_000);
        }
        let inherited = (100_000..200_000).filter(|&number| sketch.uses(hash(number)) > 0);
        let inherited = inherited.count();
        assert!(inherited < 20, "{inherited} of 100000");
    }
}
