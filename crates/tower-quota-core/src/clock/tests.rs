use core::cell::Cell;

use super::monotonic::{Anchored, COMPARE_EVERY, ClockSource, SLOWER_BY};

const START: u64 = 1_763_683_200_000_000;
const SECOND: u64 = 1_000_000;
const MOST_BACK: u64 = COMPARE_EVERY / SLOWER_BY + 1;

#[derive(Debug)]
struct Mock {
    counter: Cell<u64>,
    monotonic: Cell<u64>,
    wall: Cell<u64>,
}

impl ClockSource for &Mock {
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
