//! Tests of a table against a map.

use std::collections::HashMap;

use super::*;
use crate::algorithm::State;
use crate::entry::Slot;
use crate::memory::insert::{Content, WriteContext};
use crate::memory::row::Mark;
use crate::quota::Quota;

/// The number of new entries in tests for which any large number will do.
const MANY: u64 = if cfg!(miri) { 70 } else { 500 };
const HOUR: Quota = Quota::per_hour(100);

/// A table, and the map with the same entries.
struct Pair {
    table: Table,
    capacity: Capacity,
    map: HashMap<u64, Entry>,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        Self {
            table: Table::default(),
            capacity: Capacity::new(capacity, 1),
            map: HashMap::new(),
        }
    }

    /// Writes an entry. Returns whether there was a row for it.
    fn put(&mut self, hash: u64, entry: Entry) -> bool {
        write(
            &mut self.table,
            hash,
            entry.clone(),
            Mark::Charged,
            &self.capacity,
        );
        let has_row = self.table.find(hash).is_some();
        if has_row {
            self.map.insert(hash, entry);
        }
        has_row
    }

    fn forget(&mut self, hash: u64) {
        assert_eq!(
            self.table.find(hash).is_some(),
            self.map.remove(&hash).is_some(),
            "{hash:x}"
        );
        self.table.forget(hash, &self.capacity);
    }

    /// Asserts that the table has the entries of the map, and no other.
    fn compare(&mut self) {
        for (&hash, entry) in &self.map {
            let position = self.table.find(hash).unwrap();
            assert_eq!(self.table.row(position).hash(), hash);
            let found = self.table.check_out(position);
            write(
                &mut self.table,
                hash,
                found.clone(),
                Mark::Neither,
                &self.capacity,
            );
            assert_eq!(found, *entry, "{hash:x}");
        }
        let rows = (0..self.table.rows())
            .filter(|&row| !self.table.row(row).is_free())
            .count();
        assert_eq!(
            [rows, self.table.taken(), self.capacity.taken()],
            [self.map.len(); 3]
        );
        let elsewhere = self
            .table
            .rare
            .as_ref()
            .map_or(0, |rare| rare.elsewhere.len());
        let many = self
            .map
            .values()
            .filter(|entry| entry.slots.len() > 4)
            .count();
        assert_eq!(elsewhere, many);
    }
}

/// Writes an entry at an instant when no entry is full.
fn write(table: &mut Table, hash: u64, mut entry: Entry, mark: Mark, capacity: &Capacity) {
    let context = WriteContext {
        now: 0,
        capacity,
        together: &[],
    };
    let key = (hash, table.find(hash));
    match table.counts_of(&entry) {
        Some(counts) => table.write(
            key,
            Content::Counts(entry.at().as_micros(), &counts),
            mark,
            &context,
        ),
        None => table.write(key, Content::Entry(&mut entry), mark, &context),
    }
    table.recycle_numbers();
}

/// Returns an entry of this many limits. Entries of different marks differ.
fn entry(limits: u32, mark: u64) -> Entry {
    let at = 1_000_000 + mark;
    let state = |limit| {
        State::Bucket(crate::algorithm::Bucket::new(
            &HOUR,
            1 + mark + u64::from(limit),
            at,
        ))
    };
    let slot = |limit| Slot {
        limit,
        quota: HOUR.reduced(),
        state: state(limit),
    };
    Entry {
        at,
        slots: (0..limits).map(slot).collect(),
    }
}

/// Returns a hash for each number, by splitmix64 (Steele, Lea and Flood, 2014).
fn hash(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn table_behaves_as_map() {
    let steps = if cfg!(miri) { 100 } else { 60_000 };
    for (capacity, most_limits) in [(3, 1), (100, 3), (2_000, 1), (2_000, 4), (1 << 20, 6)] {
        let mut pair = Pair::new(capacity);
        for step in 0..steps {
            let random = hash(step << 20 | capacity as u64);
            // Three in four come or return; they come in waves, so that the table is full at times.
            let key = hash(random >> 8 & 0xfff);
            if random & 3 == 0 || step % 8_192 > 6_000 {
                pair.forget(key);
            } else if pair.map.contains_key(&key) || pair.map.len() < capacity {
                assert!(
                    pair.put(key, entry(1 + (random >> 32) as u32 % most_limits, step)),
                    "{capacity}, {step}"
                );
            }
            if step % 1_000 == 0 {
                pair.compare();
            }
        }
        pair.compare();
        assert_eq!(pair.capacity.evicted(), 0);
        pair.table.clear(&pair.capacity);
        pair.map.clear();
        pair.compare();
    }
}

/// Uses hashes that all belong to the same two buckets. No client can choose such keys.
#[test]
fn entry_without_row_takes_nothing_from_others() {
    let mut pair = Pair::new(1_000);
    assert!((0..MANY).all(|number| pair.put(hash(number), entry(1, number))));
    let alike = |number: u64| number << 48 | 0x8000_1234_5678;
    let rows = (1..=if cfg!(miri) { 12 } else { 20 })
        .filter(|&number| pair.put(alike(number), entry(1, number)))
        .count();
    assert!((ROWS..=2 * ROWS).contains(&rows), "{rows}");
    // Their limits are spent in the filter for the time of a unit, and the table has not grown without end.
    assert!(
        pair.table
            .filter()
            .is_some_and(|filter| filter.until((alike(12), 0), 0).is_some())
    );
    assert!(pair.table.rows() <= 3 * 1_000, "{} rows", pair.table.rows());
    pair.compare();
    // Nor when all rows become wide.
    assert!(pair.put(hash(0), entry(3, 0)));
    pair.compare();
}

#[test]
fn full_table_evicts_one_entry_for_another() {
    let mut pair = Pair::new(50);
    for number in 0..MANY {
        let before = pair.map.clone();
        assert!(pair.put(hash(number), entry(1, number)));
        let gone: Vec<u64> = before
            .into_keys()
            .filter(|&hash| pair.table.find(hash).is_none())
            .collect();
        assert_eq!(gone.len(), usize::from(number >= 50), "{number}");
        gone.iter().for_each(|hash| drop(pair.map.remove(hash)));
    }
    pair.compare();
    assert_eq!(pair.capacity.evicted(), MANY - 50);
}

/// Puts more entries into a table than their two buckets hold. No client can cause this.
#[test]
fn entry_lost_in_rewriting_gives_place_back() {
    let (mut table, capacity) = (Table::default(), Capacity::new(1_000, 1));
    table.renew(3, false, 0);
    for position in 0..table.rows() {
        assert!(capacity.claim());
        table.begin(position, (position as u64 + 1) << 48 | 0x8000_1234_5678);
    }
    let [home, _] = table.homes(0x8000_1234_5678);
    let hash_at_home = table.row(home * ROWS).hash();
    write(
        &mut table,
        hash_at_home,
        entry(3, 7),
        Mark::Charged,
        &capacity,
    );
    let rows = (0..table.rows())
        .filter(|&row| !table.row(row).is_free())
        .count();
    assert!(
        table.is_wide() && (1..=2 * ROWS).contains(&rows),
        "{rows} rows"
    );
    assert_eq!([table.taken(), capacity.taken()], [rows; 2]);
}

/// Asserts that about 76 of 100 narrow rows are in use, and 85 of 100 wide ones.
#[test]
#[cfg_attr(miri, ignore = "many steps, and others take them too")]
fn full_table_has_few_free_rows() {
    for first in 0..20 {
        for (limits, most) in [(1, 1_325), (3, 1_200)] {
            let mut pair = Pair::new(1_000);
            assert!(
                (0..1_000)
                    .all(|number| pair.put(hash(first << 32 | number), entry(limits, number)))
            );
            let rows = pair.table.rows();
            assert!(rows <= most, "{rows} rows");
        }
    }
}

/// Returns which of ten entries are evicted for another. `times` says how often each was written.
fn evicted(mark: Mark, times: impl Fn(u64) -> usize) -> Vec<u64> {
    let (mut table, capacity) = (Table::default(), Capacity::new(10, 1));
    for number in 0..10 {
        (0..times(number))
            .for_each(|_| write(&mut table, hash(number), entry(1, number), mark, &capacity));
    }
    write(&mut table, hash(100), entry(1, 100), mark, &capacity);
    assert_eq!(capacity.evicted(), 1);
    (0..10)
        .filter(|&number| table.find(hash(number)).is_none())
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "thousands of steps, and others take them too")]
fn least_used_is_evicted_then_last_charged() {
    assert_eq!(
        evicted(Mark::Charged, |number| if number == 3 { 1 } else { 2 }),
        [3]
    );
    assert_eq!(evicted(Mark::Charged, |_| 2), [0]);
    assert_eq!(
        evicted(Mark::Refused, |number| if number == 3 { 1 } else { 2 }),
        [3]
    );
    assert_eq!(evicted(Mark::Refused, |_| 2), [9]);
    // Uses beyond the largest count make no difference.
    assert_eq!(
        evicted(Mark::Charged, |number| if number == 3 { 1 } else { 256 }),
        [3]
    );
    assert_eq!(
        evicted(Mark::Charged, |number| if number == 3 { 255 } else { 257 }),
        [0]
    );
}
