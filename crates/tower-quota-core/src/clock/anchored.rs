//! A clock that reads the processor's counter, and follows the wall clock.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::sync::Lock;

const COMPARE_EVERY: u64 = 100_000;
/// A clock ahead of the wall clock runs slower by a thousandth.
const SLOWER_BY: u64 = 1_000;

pub(super) trait Source: fmt::Debug {
    /// Returns the processor's counter, from any start. The counter is fast to read, but may jump.
    fn counter(&self) -> u64;

    /// Returns the monotonic clock, from any start. The clock stops during a suspension.
    fn monotonic(&self) -> u64;

    fn wall(&self) -> u64;
}

#[derive(Debug)]
pub(super) struct Anchored<S> {
    source: S,
    offset: AtomicU64,
    compared_at: AtomicU64,
    last: Lock<Comparison>,
}

#[derive(Debug)]
struct Comparison {
    monotonic: u64,
    time: u64,
}

impl<S: Source> Anchored<S> {
    pub(super) fn new(source: S) -> Self {
        let last = Comparison {
            monotonic: source.monotonic(),
            time: source.wall(),
        };
        let counter = source.counter();
        Self {
            offset: AtomicU64::new(last.time.wrapping_sub(counter)),
            compared_at: AtomicU64::new(counter),
            last: Lock::new(last),
            source,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.by_counter().unwrap_or_else(|| self.compare())
    }

    fn by_counter(&self) -> Option<u64> {
        let counter = self.source.counter();
        // A counter that has gone back wraps around to a long time.
        let passed = counter.wrapping_sub(self.compared_at.load(Ordering::Acquire));
        (passed < COMPARE_EVERY).then(|| counter.wrapping_add(self.offset.load(Ordering::Relaxed)))
    }

    #[cold]
    fn compare(&self) -> u64 {
        let mut last = self.last.lock();
        // Another thread may have compared meanwhile.
        if let Some(now) = self.by_counter() {
            return now;
        }
        // Read the counter last, so that a preempted thread makes the clock late and never early.
        let wall = self.source.wall();
        let monotonic = self.source.monotonic();
        let counter = self.source.counter();
        let passed = monotonic.saturating_sub(last.monotonic);
        let slowest = last.time + passed - passed / SLOWER_BY;
        let time = slowest.max(wall);
        *last = Comparison { monotonic, time };
        self.offset
            .store(time.wrapping_sub(counter), Ordering::Relaxed);
        self.compared_at.store(counter, Ordering::Release);
        time
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    const START: u64 = 1_763_683_200_000_000;
    const SECOND: u64 = 1_000_000;
    const MOST_BACK: u64 = COMPARE_EVERY / SLOWER_BY + 1;

    #[derive(Debug)]
    struct Mock {
        counter: Cell<u64>,
        monotonic: Cell<u64>,
        wall: Cell<u64>,
    }

    impl Source for &Mock {
        fn counter(&self) -> u64 {
            self.counter.get()
        }

        fn monotonic(&self) -> u64 {
            self.monotonic.get()
        }

        fn wall(&self) -> u64 {
            self.wall.get()
        }
    }

    impl Mock {
        fn new() -> Self {
            Self {
                counter: Cell::new(77 * SECOND),
                monotonic: Cell::new(5 * SECOND),
                wall: Cell::new(START),
            }
        }

        fn pass(&self, micros: u64, counted: u64) {
            self.wall.set(self.wall.get() + micros);
            self.monotonic.set(self.monotonic.get() + micros);
            self.counter.set(self.counter.get().wrapping_add(counted));
        }
    }

    fn run_second(clock: &Anchored<&Mock>, mock: &Mock, counted: u64) -> (i64, u64) {
        let mut last = clock.now();
        let mut back = 0;
        for _ in 0..1_000 {
            mock.pass(1_000, counted);
            let now = clock.now();
            back = back.max(last.saturating_sub(now));
            last = now;
        }
        (last.wrapping_sub(mock.wall.get()).cast_signed(), back)
    }

    #[test]
    fn inaccurate_counter_never_drifts() {
        for counted in [999, 1_000, 1_001] {
            let mock = Mock::new();
            let clock = Anchored::new(&mock);
            for second in 0..3_600 {
                let (ahead, back) = run_second(&clock, &mock, counted);
                assert!(ahead.abs() <= 100, "{counted}, {second}: {ahead}");
                assert!(back <= MOST_BACK, "{counted}, {second}: {back}");
            }
        }
    }

    #[test]
    fn suspended_machine_catches_up_at_once() {
        let mock = Mock::new();
        let clock = Anchored::new(&mock);
        run_second(&clock, &mock, 1_000);
        mock.wall.set(mock.wall.get() + 3_600 * SECOND);
        mock.pass(COMPARE_EVERY, COMPARE_EVERY);
        assert_eq!(clock.now(), mock.wall.get());
        assert_eq!(run_second(&clock, &mock, 1_000), (0, 0));
    }

    #[test]
    fn counter_that_jumps_moves_nothing() {
        for counter in [
            0,
            5,
            77 * SECOND + COMPARE_EVERY + 1_000_000,
            u64::MAX / 2,
            u64::MAX,
        ] {
            let mock = Mock::new();
            let clock = Anchored::new(&mock);
            run_second(&clock, &mock, 1_000);
            mock.counter.set(counter);
            let (ahead, back) = run_second(&clock, &mock, 1_000);
            assert_eq!((ahead, back), (0, 0), "{counter}");
        }
    }

    #[test]
    fn wall_clock_set_back_slows_the_clock() {
        let mock = Mock::new();
        let clock = Anchored::new(&mock);
        mock.wall.set(START - SECOND);
        for second in 1..=1_000 {
            let (ahead, back) = run_second(&clock, &mock, 1_000);
            let expected = (1_000 - second) * 1_000;
            assert!(
                (expected - 100..=expected + 1_000).contains(&ahead),
                "{second}: {ahead}"
            );
            assert!(back <= MOST_BACK, "{second}: {back}");
        }
    }
}
