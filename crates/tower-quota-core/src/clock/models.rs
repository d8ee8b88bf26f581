//! Every order in which threads can read and replace a line, by loom. Run by `scripts/contention`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::thread;

use super::counter::TimeSource;
use super::line::{Line, Rate};
use super::machine::Machine;
use crate::sync::every_order;

/// A comparison, and the rate that was measured with it.
type Published = (u64, u64, Rate);

fn lines() -> [Published; 2] {
    let rate = |steps| Rate::measured(steps, 1_000_000_000).unwrap();
    // They differ in all three values, so that any mixture gives another time.
    [
        (100_000, 50_000, rate(2_000_000)),
        (110_000, 1_000_000, rate(4_000_000)),
    ]
}

/// A counter within the windows of both lines.
const COUNTER: u64 = 112_000;

fn publish(line: &Line, (counter, micros, rate): Published) {
    line.publish(counter, micros, rate);
}

/// Returns the time by one line alone.
fn time_by(published: Published) -> Option<u64> {
    let line = Line::closed();
    publish(&line, published);
    line.micros(|| COUNTER)
}

/// Lets a reader race with a writer. Asserts that each reading is by one of the lines, or none.
fn race(name: &str, readings: usize, write: impl Fn(&Line) + Copy + Send + Sync + 'static) {
    every_order(name, move || {
        let line = Arc::new(Line::closed());
        let [one, other] = lines();
        let times = [None, time_by(one), time_by(other)];
        publish(&line, one);
        let writer = thread::spawn({
            let line = Arc::clone(&line);
            move || write(&line)
        });
        for _ in 0..readings {
            let time = line.micros(|| COUNTER);
            assert!(times.contains(&time), "{time:?} is not of {times:?}");
        }
        writer.join().unwrap();
        assert_eq!(line.micros(|| COUNTER), times[2]);
    });
}

#[test]
fn replaced_line_is_never_torn() {
    race("a line replaced", 2, |line| publish(line, lines()[1]));
    race("a line replaced twice", 1, |line| {
        publish(line, lines()[0]);
        publish(line, lines()[1]);
    });
    race("a line closed and opened", 1, |line| {
        line.close();
        publish(line, lines()[1]);
    });
}

/// A source whose clocks advance only when the test moves them.
#[derive(Debug, Default)]
struct SteppedSource {
    counter: AtomicU64,
    micros: AtomicU64,
}

impl SteppedSource {
    fn pass(&self, micros: u64, steps: u64) {
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.counter.fetch_add(micros * steps, Ordering::Relaxed);
    }
}

impl TimeSource for &'static SteppedSource {
    fn has_counter(&self) -> bool {
        true
    }

    fn counter(&self) -> u64 {
        self.counter.load(Ordering::Relaxed)
    }

    fn system_nanos(&self) -> u64 {
        self.micros.load(Ordering::Relaxed) * 1_000
    }
}

/// Asserts that one of several threads makes a due comparison, and that all read the right time.
#[test]
fn comparison_under_readers_is_made_once() {
    every_order("a comparison under readers", || {
        // One for each order: a few bytes.
        let source: &'static SteppedSource = Box::leak(Box::default());
        let machine = Arc::new(Machine::start(source));
        for _ in 0..3 {
            source.pass(60_000, 2_400);
            machine.elapsed_micros();
        }
        source.pass(200_000, 2_401);
        let read = |machine: &Machine<_>| {
            let (elapsed, system) = (
                machine.elapsed_micros(),
                source.micros.load(Ordering::Relaxed),
            );
            assert!(
                elapsed.abs_diff(system) <= 5,
                "the clock says {elapsed}, the system {system}"
            );
        };
        let other = thread::spawn({
            let machine = Arc::clone(&machine);
            move || read(&machine)
        });
        read(&machine);
        read(&machine);
        other.join().unwrap();
        source.pass(1_000, 2_401);
        read(&machine);
    });
}
