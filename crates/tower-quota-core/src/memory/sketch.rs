//! Remembers the uses of evicted keys.
//!
//! A client who returns after an eviction continues with the former number of uses, as in TinyLFU (Einziger, Friedman and
//! Manes, 2017). Fingerprints next to the counters keep made-up keys from inheriting uses.

const CELLS: usize = 4;

#[derive(Default)]
pub(super) struct UseSketch(Box<[[Cell; CELLS]]>);

#[derive(Clone, Copy, Default)]
struct Cell {
    fingerprint: u16,
    uses: u8,
}

impl UseSketch {
    pub(super) fn remember(&mut self, hash: u64, uses: u8, rows: usize) {
        if self.0.is_empty() {
            self.0 = vec![[Cell::default(); CELLS]; rows.div_ceil(2)].into();
        }
        let (fingerprint, set) = self.place(hash);
        // Choose the cell of the key, or the least used cell.
        let cost = |cell: &&mut Cell| (cell.fingerprint != fingerprint, cell.uses);
        let Some(cell) = self.0[set].iter_mut().min_by_key(cost) else {
            return;
        };
        if cell.uses <= uses || cell.fingerprint == fingerprint {
            *cell = Cell { fingerprint, uses };
        } else {
            // Reduce the uses by an eighth, so that new keys slowly replace a client who was busy
            // long ago.
            cell.uses -= cell.uses.div_ceil(8);
        }
    }

    /// Returns the uses of a key when it was evicted, or 0. One new key in 16,384 gets the uses of another key.
    pub(super) fn uses(&self, hash: u64) -> u8 {
        let (fingerprint, set) = self.place(hash);
        let mut cells = self.0.get(set).into_iter().flatten();
        let own = cells.find(|cell| cell.fingerprint == fingerprint);
        own.map_or(0, |cell| cell.uses)
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn place(&self, hash: u64) -> (u16, usize) {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let set = ((mixed & 0xffff_ffff) * self.0.len() as u64) >> 32;
        ((mixed >> 48) as u16, set as usize)
    }
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
