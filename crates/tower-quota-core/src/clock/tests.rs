use core::cell::Cell;

use super::counter::{Processor, TimeSource};
use super::line::{Line, Rate, WINDOW_MICROS};
use super::machine::Machine;

/// Steps of the counter in a microsecond.
const STEPS: u64 = 2_400;
const MILLI: u64 = 1_000;

/// Two clocks that the test moves.
#[derive(Debug)]
struct Mock {
    has_counter: bool,
    counter: Cell<u64>,
    micros: Cell<u64>,
    /// The readings of the counter that are followed by a pause of these microseconds.
    pauses: Cell<u32>,
    pause_micros: Cell<u64>,
    system_readings: Cell<u32>,
}

impl Mock {
    fn pass(&self, micros: u64) {
        self.micros.set(self.micros.get() + micros);
        self.counter
            .set(self.counter.get().wrapping_add(micros * STEPS));
    }
}

impl TimeSource for &Mock {
    fn has_counter(&self) -> bool {
        self.has_counter
    }

    fn counter(&self) -> u64 {
        let counter = self.counter.get();
        if self.pauses.get() > 0 {
            self.pauses.set(self.pauses.get() - 1);
            self.pass(self.pause_micros.get());
        }
        counter
    }

    fn system_nanos(&self) -> u64 {
        self.system_readings.set(self.system_readings.get() + 1);
        self.micros.get() * 1_000
    }
}

fn mock() -> Mock {
    Mock {
        has_counter: true,
        counter: Cell::new(77_000_000_000),
        micros: Cell::new(0),
        pauses: Cell::new(0),
        pause_micros: Cell::new(0),
        system_readings: Cell::new(0),
    }
}

/// Passes time in steps of a millisecond, and asserts that the clock shows the system's time at each.
fn run_exactly(machine: &Machine<&Mock>, mock: &Mock, millis: u64) {
    for _ in 0..millis {
        mock.pass(MILLI);
        assert_close(machine, mock);
    }
}

fn assert_close(machine: &Machine<&Mock>, mock: &Mock) {
    let (elapsed, system) = (machine.elapsed_micros(), mock.micros.get());
    assert!(
        elapsed.abs_diff(system) <= 5,
        "the clock says {elapsed}, the system {system}"
    );
}

/// Returns whether the clock follows the counter while the system's clock stands still.
fn follows_counter(machine: &Machine<&Mock>, mock: &Mock) -> bool {
    let before = machine.elapsed_micros();
    mock.counter.set(mock.counter.get().wrapping_add(2 * STEPS));
    let follows = machine.elapsed_micros() != before;
    mock.counter.set(mock.counter.get().wrapping_sub(2 * STEPS));
    follows
}

#[test]
fn new_clock_follows_the_system() {
    let mock = mock();
    let machine = Machine::start(&mock);
    for _ in 0..40 {
        mock.pass(MILLI);
        mock.counter.set(mock.counter.get() + 999);
        assert_eq!(machine.elapsed_micros(), mock.micros.get());
    }
}

#[test]
fn counter_of_constant_rate_is_used() {
    let mock = mock();
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 60);
    assert!(!follows_counter(&machine, &mock));
    run_exactly(&machine, &mock, 50);
    assert!(follows_counter(&machine, &mock));
}

#[test]
fn counter_and_system_agree_for_long() {
    let mock = mock();
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 10_000);
    mock.pass(3_600_000 * MILLI);
    assert_close(&machine, &mock);
    assert!(follows_counter(&machine, &mock));
}

#[test]
fn restart_or_jump_is_noticed_at_once() {
    let jumps = [WINDOW_MICROS * STEPS, 1 << 40, u64::MAX / 2].map(|jump| (500, Some(jump)));
    for (millis, jump) in [10, 60, 110, 500]
        .map(|millis| (millis, None))
        .into_iter()
        .chain(jumps)
    {
        let mock = mock();
        let machine = Machine::start(&mock);
        run_exactly(&machine, &mock, millis);
        mock.counter
            .set(jump.map_or(0, |jump| mock.counter.get().wrapping_add(jump)));
        assert_close(&machine, &mock);
        run_exactly(&machine, &mock, 4_000);
        assert!(follows_counter(&machine, &mock), "{millis} ms, {jump:?}");
    }
}

#[test]
fn small_jump_is_corrected_within_window() {
    for (jump_back, jump_ahead) in [(30, 0), (90, 0), (0, 30), (0, 90)] {
        let mock = mock();
        let machine = Machine::start(&mock);
        run_exactly(&machine, &mock, 500);
        let before = machine.elapsed_micros();
        mock.counter
            .set(mock.counter.get() - jump_back * MILLI * STEPS + jump_ahead * MILLI * STEPS);
        for _ in 0..100 {
            let elapsed = machine.elapsed_micros();
            assert!(elapsed + WINDOW_MICROS >= before);
            assert!(elapsed.abs_diff(mock.micros.get()) <= WINDOW_MICROS);
            mock.pass(MILLI);
        }
        run_exactly(&machine, &mock, 400);
        assert!(follows_counter(&machine, &mock));
    }
}

#[test]
fn preempted_comparison_is_repeated() {
    let mock = mock();
    let machine = Machine::start(&mock);
    for _ in 0..50 {
        mock.pauses.set(3);
        mock.pause_micros.set(30 * MILLI);
        mock.pass(WINDOW_MICROS);
        machine.elapsed_micros();
        mock.pauses.set(0);
        run_exactly(&machine, &mock, 20);
    }
    assert!(follows_counter(&machine, &mock));
}

#[test]
fn comparison_that_stays_preempted_is_left_out() {
    let mock = mock();
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 500);
    mock.pass(WINDOW_MICROS);
    mock.pauses.set(u32::MAX);
    mock.pause_micros.set(MILLI);
    for _ in 0..100 {
        assert_close(&machine, &mock);
    }
    mock.pauses.set(0);
    run_exactly(&machine, &mock, 300);
    assert!(follows_counter(&machine, &mock));
}

#[test]
fn failed_comparison_is_repeated_later() {
    let mock = mock();
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 500);
    mock.pass(WINDOW_MICROS);
    mock.pauses.set(u32::MAX);
    mock.pause_micros.set(10);
    machine.elapsed_micros();
    let before = mock.system_readings.get();
    for _ in 0..100 {
        assert_close(&machine, &mock);
    }
    assert_eq!(
        mock.system_readings.get() - before,
        200,
        "one to see whether it is due, one for the time"
    );
}

#[test]
fn counter_of_varying_rate_is_not_used() {
    let mock = mock();
    let machine = Machine::start(&mock);
    for step in 0..2_000 {
        mock.pass(MILLI);
        mock.counter
            .set(mock.counter.get() + if step / 50 % 2 == 0 { 100_000 } else { 0 });
        assert_close(&machine, &mock);
        assert!(!follows_counter(&machine, &mock));
    }
}

#[test]
fn counter_without_promise_is_not_used() {
    let mock = Mock {
        has_counter: false,
        ..mock()
    };
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 500);
    assert!(!follows_counter(&machine, &mock));
}

#[test]
fn counter_that_wraps_keeps_its_line() {
    let mock = mock();
    mock.counter.set(u64::MAX - 300 * MILLI * STEPS);
    let machine = Machine::start(&mock);
    run_exactly(&machine, &mock, 1_000);
    assert!(follows_counter(&machine, &mock));
}

#[test]
fn slow_counter_has_no_rate() {
    assert_eq!(Rate::measured(50_000, 50_000_000), None);
    assert_eq!(Rate::measured(0, 50_000_000), None);
    assert!(Rate::measured(50_001, 50_000_000).is_some());
    assert!(Rate::measured(u64::MAX, u64::MAX).is_some());
}

#[test]
fn line_replaced_while_read_is_not_used() {
    let (line, rate) = (
        Line::closed(),
        Rate::measured(2_000_000, 1_000_000_000).unwrap(),
    );
    assert_eq!(line.micros(|| 20_000), None);
    line.publish(20_000, 10_000, rate);
    assert!(line.micros(|| 20_000).is_some());
    let replace = || {
        line.publish(20_000, 10_000, rate);
        20_000
    };
    assert_eq!(line.micros(replace), None);
    line.close();
    assert_eq!(line.micros(|| 20_000), None);
}

#[test]
fn processor_clocks_run_forward() {
    let source = Processor::start();
    let (counter, nanos) = (source.counter(), source.system_nanos());
    assert!(source.system_nanos() >= nanos);
    assert!(!source.has_counter() || source.counter() >= counter);
}
