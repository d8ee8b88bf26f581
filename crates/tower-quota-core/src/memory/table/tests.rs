//! A table is a map, whatever it moves about inside.

use std::collections::HashMap;

use super::*;
use crate::algorithm::{Bucket, State};
use crate::entry::Slot;
use crate::memory::known::Known;
use crate::memory::row::Use;
use crate::quota::Quota;
use crate::time::Timestamp;

/// Nobody is whole by then.
const NOW: Timestamp = Timestamp::EPOCH;
/// Subjects that come, where it matters little how many.
const MANY: u64 = if cfg!(miri) { 70 } else { 500 };
const HOUR: Quota = Quota::per_hour(100);

/// A table beside the map it should be.
struct Pair {
    table: Table,
    room: Room,
    known: Known,
    map: HashMap<u64, Entry>,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let (table, known, map) = (Table::default(), Known::new(), HashMap::new());
        Self { table, room: Room::new(capacity, 1), known, map }
    }

    /// Remembers a subject, or what has become of it. Whether there was a row for it.
    fn put(&mut self, hash: u64, subject: Entry) -> bool {
        let (room, known) = (&self.room, &self.known);
        let position = match self.table.find(hash) {
            Some(position) => {
                self.table.check_out(position, known);
                position
            }
            None => match self.table.place(hash, NOW, (room, known), &[]) {
                Some(position) => position,
                None => return false,
            },
        };
        self.table.check_in(position, subject.clone(), Use::Charged, (room, known));
        self.map.insert(hash, subject);
        true
    }

    fn forget(&mut self, hash: u64) {
        let position = self.table.find(hash);
        assert_eq!(position.is_some(), self.map.remove(&hash).is_some(), "{hash:x}");
        if let Some(position) = position {
            self.table.forget(position, &self.room);
        }
    }

    /// Everybody is found, as he was put, and nobody else.
    fn compare(&mut self) {
        for (&hash, subject) in &self.map {
            let position = self.table.find(hash).unwrap();
            assert_eq!(self.table.row(position).hash(), hash);
            let found = self.table.check_out(position, &self.known);
            self.table.check_in(position, found.clone(), Use::Other, (&self.room, &self.known));
            assert_eq!(found, *subject, "{hash:x}");
        }
        let rows = (0..self.table.rows()).filter(|&row| !self.table.row(row).is_free()).count();
        assert_eq!([rows, self.table.taken(), self.room.taken()], [self.map.len(); 3]);
        let elsewhere = self.table.rare.as_ref().map_or(0, |rare| rare.elsewhere.len());
        let many = self.map.values().filter(|subject| subject.slots.len() > 4).count();
        assert_eq!(elsewhere, many);
    }
}

/// A subject of so many limits, with this to tell it from others.
fn subject(limits: u32, mark: u64) -> Entry {
    let at = 1_000_000 + mark;
    let state = |limit| State::Bucket(Bucket::new(&HOUR, 1 + mark + u64::from(limit), at));
    let slot = |limit| Slot { limit, quota: HOUR.reduced(), state: state(limit) };
    Entry { at, slots: (0..limits).map(slot).collect() }
}

/// A hash for each number, by splitmix64 (Steele, Lea and Flood, 2014).
fn hash(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn it_is_a_map() {
    let steps = if cfg!(miri) { 100 } else { 60_000 };
    for (capacity, most_limits) in [(3, 1), (100, 3), (2_000, 1), (2_000, 4), (1 << 20, 6)] {
        let mut pair = Pair::new(capacity);
        for step in 0..steps {
            let random = hash(step << 20 | capacity as u64);
            // Three in four come or come again; they come in waves, so that the table is full at times.
            let who = hash(random >> 8 & 0xfff);
            if random & 3 == 0 || step % 8_192 > 6_000 {
                pair.forget(who);
            } else if pair.map.contains_key(&who) || pair.map.len() < capacity {
                assert!(pair.put(who, subject(1 + (random >> 32) as u32 % most_limits, step)), "{capacity}, {step}");
            }
            if step % 1_000 == 0 {
                pair.compare();
            }
        }
        pair.compare();
        assert_eq!(pair.room.evicted(), 0);
        pair.table.clear(&pair.room);
        pair.map.clear();
        pair.compare();
    }
}

/// Not even one that nobody could choose, of hashes that all belong into the same two buckets.
#[test]
fn who_finds_no_row_takes_nothing_from_others() {
    let mut pair = Pair::new(1_000);
    assert!((0..MANY).all(|number| pair.put(hash(number), subject(1, number))));
    let alike = |number: u64| number << 48 | 0x8000_1234_5678;
    let rows =
        (1..=if cfg!(miri) { 12 } else { 20 }).filter(|&number| pair.put(alike(number), subject(1, number))).count();
    assert!((ROWS..=2 * ROWS).contains(&rows), "{rows}");
    pair.compare();
    // Nor when all rows become wide.
    assert!(pair.put(hash(0), subject(3, 0)));
    pair.compare();
}

#[test]
fn a_full_table_gives_one_place_for_another() {
    let mut pair = Pair::new(50);
    for number in 0..MANY {
        let before = pair.map.clone();
        assert!(pair.put(hash(number), subject(1, number)));
        let gone: Vec<u64> = before.into_keys().filter(|&hash| pair.table.find(hash).is_none()).collect();
        assert_eq!(gone.len(), usize::from(number >= 50), "{number}");
        gone.iter().for_each(|hash| drop(pair.map.remove(hash)));
    }
    pair.compare();
    assert_eq!(pair.room.evicted(), MANY - 50);
}

/// More than two buckets can hold, which nobody can bring about, some of them where they do not belong.
#[test]
fn who_finds_no_row_when_a_table_is_written_anew_gives_his_place_back() {
    let (mut table, room, known) = (Table::default(), Room::new(1_000, 1), Known::new());
    table.renew(3, false, 0);
    for position in 0..table.rows() {
        assert!(room.claim());
        table.begin(position, (position as u64 + 1) << 48 | 0x8000_1234_5678);
    }
    let [home, _] = table.homes(0x8000_1234_5678);
    table.check_in(home * ROWS, subject(3, 7), Use::Charged, (&room, &known));
    let rows = (0..table.rows()).filter(|&row| !table.row(row).is_free()).count();
    assert!(table.is_wide() && (1..=2 * ROWS).contains(&rows), "{rows} rows");
    assert_eq!([table.taken(), room.taken()], [rows; 2]);
}

/// Of a hundred narrow rows 76 are in use, of wide ones 85.
#[test]
#[cfg_attr(miri, ignore = "many steps, and others take them too")]
fn a_full_table_has_few_free_rows() {
    for first in 0..20 {
        for (limits, most) in [(1, 1_325), (3, 1_200)] {
            let mut pair = Pair::new(1_000);
            assert!((0..1_000).all(|number| pair.put(hash(first << 32 | number), subject(limits, number))));
            let rows = pair.table.rows();
            assert!(rows <= most, "{rows} rows");
        }
    }
}

/// The one of ten who goes for another, each of them put in so often.
fn who_goes(use_of_it: Use, times: impl Fn(u64) -> usize) -> Vec<u64> {
    let (mut table, room, known) = (Table::default(), Room::new(10, 1), Known::new());
    for number in 0..10 {
        let position = table.place(hash(number), NOW, (&room, &known), &[]).unwrap();
        for _ in 0..times(number) {
            table.check_out(position, &known);
            table.check_in(position, subject(1, number), use_of_it, (&room, &known));
        }
    }
    assert!(table.place(hash(100), NOW, (&room, &known), &[]).is_some());
    assert_eq!(room.evicted(), 1);
    (0..10).filter(|&number| table.find(hash(number)).is_none()).collect()
}

#[test]
#[cfg_attr(miri, ignore = "thousands of steps, and others take them too")]
fn the_least_used_goes_and_of_those_who_are_limited_alike_the_one_charged_last() {
    assert_eq!(who_goes(Use::Charged, |number| if number == 3 { 1 } else { 2 }), [3]);
    assert_eq!(who_goes(Use::Charged, |_| 2), [0]);
    assert_eq!(who_goes(Use::Refused, |number| if number == 3 { 1 } else { 2 }), [3]);
    assert_eq!(who_goes(Use::Refused, |_| 2), [9]);
    // No matter how often, once there is no more counting.
    assert_eq!(who_goes(Use::Charged, |number| if number == 3 { 1 } else { 256 }), [3]);
    assert_eq!(who_goes(Use::Charged, |number| if number == 3 { 255 } else { 257 }), [0]);
}
