//! Runs threads that collide in one store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use super::crowd::Crowd;
use super::history::{Call, ChargeSpec, EVERYONE, Entries, RecordedRequest, explain};
use crate::charge::Operation;
use crate::memory::MemoryStore;
use crate::quota::Quota;
use crate::sync::collisions;
use crate::time::Timestamp;

const HISTORIES: u64 = if cfg!(miri) { 4 } else { 3_000 };
/// The number of histories of a store. Each begins with the entries at the end of the last one.
const LINKED: u64 = if cfg!(miri) { 2 } else { 10 };
const REQUESTS: usize = 3;
const NOW: Timestamp = Timestamp::from_micros(1_763_683_200_000_000);

#[test]
fn some_order_explains_two_threads() {
    histories(2);
}

#[test]
fn some_order_explains_three_threads() {
    histories(3);
}

fn histories(threads: usize) {
    let mut found = Found::default();
    for chain in 0..HISTORIES / LINKED {
        let crowd = Crowd::at(NOW);
        let store = MemoryStore::with_clock(100, crowd.clone());
        let mut entries = vec![Entries::default()];
        for link in 0..LINKED {
            let mut random = Random(chain * LINKED + link);
            let calls = history(&store, &crowd, threads, &mut random);
            entries = explain(&calls, &entries);
            assert!(
                !entries.is_empty(),
                "no order explains history {link} of chain {chain}: {calls:#?}"
            );
            found.add(&calls);
            crowd.advance(random.below(20_000_000));
        }
        found.collisions += crowd.collisions().load(Ordering::SeqCst);
    }
    println!("{threads} threads, {HISTORIES} histories: {found:?}");
    assert!(
        found.collisions as u64 >= HISTORIES && found.histories_with_overlaps == HISTORIES,
        "{found:?}"
    );
}

#[derive(Debug, Default)]
struct Found {
    calls: usize,
    overlaps: usize,
    histories_with_overlaps: u64,
    collisions: usize,
}

impl Found {
    fn add(&mut self, calls: &[Call]) {
        let pairs = calls
            .iter()
            .enumerate()
            .flat_map(|(number, call)| calls[..number].iter().map(move |other| (call, other)));
        let overlaps = pairs
            .filter(|(one, other)| one.begun < other.ended && other.begun < one.ended)
            .count();
        self.calls += calls.len();
        self.overlaps += overlaps;
        self.histories_with_overlaps += u64::from(overlaps > 0);
    }
}

/// Runs requests of some threads at once, then peeks at every limit.
fn history(store: &MemoryStore, crowd: &Crowd, threads: usize, random: &mut Random) -> Vec<Call> {
    let (ticks, calls, start) = (
        AtomicU64::new(0),
        Mutex::new(Vec::new()),
        Barrier::new(threads),
    );
    crowd.gather(threads);
    thread::scope(|scope| {
        for number in 0..threads {
            let mut requests: Vec<RecordedRequest> =
                (0..REQUESTS).map(|_| random.request()).collect();
            if number == 0 {
                requests[0] = random.locked_request();
            }
            let steps: Vec<u64> = (0..REQUESTS)
                .map(|_| random.below(3) * random.below(700_000))
                .collect();
            let (ticks, calls, start) = (&ticks, &calls, &start);
            scope.spawn(move || {
                collisions::count_in(crowd.collisions());
                start.wait();
                if number == 0 {
                    crowd.hold_up();
                } else {
                    crowd.wait_for_hold_up();
                }
                for (request, step) in requests.iter().zip(steps) {
                    let call = request.call(store, ticks);
                    calls.lock().unwrap().push(call);
                    crowd.advance(step);
                }
                crowd.leave();
            });
        }
    });
    let mut calls = calls.into_inner().unwrap();
    let peek = |key| {
        LIMITS.map(|(limit, quota)| ChargeSpec {
            key,
            limit,
            quota,
            cost: 0,
        })
    };
    let all = (0..=EVERYONE).flat_map(peek).collect();
    calls.push(
        RecordedRequest {
            operation: Operation::Check,
            charges: all,
        }
        .call(store, &ticks),
    );
    calls
}

/// The limits of each key. Rows cannot hold the last two.
const LIMITS: [(&str, Quota); 6] = [
    ("minute", Quota::per_minute(6)),
    ("hour", Quota::per_hour(9)),
    ("window", Quota::per_minute(5).fixed_window()),
    ("sliding", Quota::per_minute(5).sliding_window()),
    (
        "first",
        Quota::per_minute(5).fixed_window().from_first_request(),
    ),
    ("log", Quota::per_minute(4).sliding_log()),
];

/// A random number generator, splitmix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn spec(&mut self, key: usize, limits: &[(&'static str, Quota)]) -> ChargeSpec {
        let (limit, quota) = self.pick(limits);
        ChargeSpec {
            key,
            limit,
            quota,
            cost: self.pick(&[1, 1, 1, 2, 3]),
        }
    }

    fn request(&mut self) -> RecordedRequest {
        let client = self.pick(&[0, 0, 0, 1]);
        let (minute, hour) = (&LIMITS[..1], &LIMITS[1..2]);
        let charges = match self.below(10) {
            0..3 => vec![self.spec(client, minute)],
            3 | 4 => vec![self.spec(client, minute), self.spec(client, hour)],
            5 => vec![self.spec(client, minute), self.spec(EVERYONE, hour)],
            6 => vec![
                self.spec(EVERYONE, hour),
                self.spec(client, minute),
                self.spec(1 - client, minute),
            ],
            7 => vec![self.spec(client, &LIMITS)],
            8 => vec![self.spec(
                client,
                &[
                    ("minute", Quota::per_minute(7)),
                    ("minute", Quota::per_hour(6)),
                ],
            )],
            _ => return self.locked_request(),
        };
        RecordedRequest {
            operation: Operation::Check,
            charges,
        }
    }

    fn locked_request(&mut self) -> RecordedRequest {
        let client = self.pick(&[0, 0, 0, 1]);
        let mut spec = self.spec(client, &LIMITS);
        let taken_at = NOW;
        let operation = self.pick(&[
            Operation::Reset,
            Operation::Refund { taken_at },
            Operation::Charge,
            Operation::Refuse,
            Operation::Check,
        ]);
        if operation == Operation::Check {
            spec.cost = 0;
        }
        RecordedRequest {
            operation,
            charges: vec![spec],
        }
    }
}
