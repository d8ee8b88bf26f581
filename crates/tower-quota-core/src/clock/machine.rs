//! A clock on the processor's counter that the system's clock corrects.
//!
//! It begins on the system's clock. Readings that take that clock also compare it with the counter, and measure the
//! counter's rate from one comparison to the next. When two successive rates agree, the counter is used for a window of
//! its steps ([`Line`]). At the end of the window the next reading compares again. A counter that restarts or jumps
//! ahead leaves its window at once. Then rates are measured again.

use super::counter::TimeSource;
use super::line::{Line, Rate};
use crate::sync::{AtomicU64, Mutex, Ordering, try_locked};

/// The shortest time over which a rate is measured.
pub(super) const MEASURED_NANOS: u64 = 50_000_000;

/// The longest time between the two readings of the system's clock around one of the counter.
///
/// It limits the error to half of that, and to some ten microseconds at the end of a window.
const BRACKET_NANOS: u64 = 5_000;

/// Attempts at one comparison. A comparison of a preempted thread takes longer than the bracket allows.
const ATTEMPTS: usize = 8;

#[derive(Debug)]
pub(super) struct Machine<S> {
    source: S,
    line: Line,
    /// The next instant at which rates can be measured, by the system's clock.
    due_nanos: AtomicU64,
    last: Mutex<Comparison>,
}

/// The counter and the system's clock at one moment.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    counter: u64,
    nanos: u64,
    /// The counter's rate since the comparison before.
    rate: Option<Rate>,
}

impl<S: TimeSource> Machine<S> {
    pub(super) fn start(source: S) -> Self {
        let first = Comparison {
            counter: source.counter(),
            nanos: source.system_nanos(),
            rate: None,
        };
        Self {
            source,
            line: Line::closed(),
            due_nanos: AtomicU64::new(first.nanos.saturating_add(MEASURED_NANOS)),
            last: Mutex::new(first),
        }
    }

    /// Returns the microseconds since the start.
    #[inline]
    pub(super) fn elapsed_micros(&self) -> u64 {
        match self.line.micros(|| self.source.counter()) {
            Some(micros) => micros,
            None => self.elapsed_by_system(),
        }
    }

    /// Reads the system's clock, and compares the counter with it if that is due.
    #[cold]
    #[inline(never)]
    fn elapsed_by_system(&self) -> u64 {
        let is_due = || {
            self.line.is_open()
                || self.source.system_nanos() >= self.due_nanos.load(Ordering::Relaxed)
        };
        if self.source.has_counter() && is_due() {
            // While another thread compares, the system's clock is right without it.
            if let Some(mut last) = try_locked(&self.last) {
                self.compare(&mut last);
            }
        }
        self.source.system_nanos() / 1_000
    }

    fn compare(&self, last: &mut Comparison) {
        let Some((counter, nanos)) = self.read_both() else {
            // The system's clock is slow, or this thread is preempted: it is not tried again at every reading.
            if self.line.is_open() && self.line.micros(|| self.source.counter()).is_none() {
                self.line.close();
            }
            self.due_nanos.store(
                self.source.system_nanos().saturating_add(MEASURED_NANOS),
                Ordering::Relaxed,
            );
            return;
        };
        let passed = nanos.saturating_sub(last.nanos);
        let rate = if passed >= MEASURED_NANOS {
            Rate::measured(counter.wrapping_sub(last.counter), passed)
        } else if self.line.is_open() && self.line.micros(|| counter).is_none() {
            // The window takes longer than this: the counter has jumped.
            None
        } else {
            // Another thread has just compared.
            return;
        };
        match (rate, last.rate) {
            (Some(rate), Some(before)) if rate.agrees_with(before) => {
                self.line.publish(counter, nanos / 1_000, rate)
            }
            _ => self.line.close(),
        }
        *last = Comparison {
            counter,
            nanos,
            rate,
        };
        self.due_nanos
            .store(nanos.saturating_add(MEASURED_NANOS), Ordering::Relaxed);
    }

    /// Reads both clocks at nearly the same moment: the counter between two readings of the system's clock.
    fn read_both(&self) -> Option<(u64, u64)> {
        (0..ATTEMPTS).find_map(|_| {
            let before = self.source.system_nanos();
            let counter = self.source.counter();
            let width = self.source.system_nanos().saturating_sub(before);
            (width <= BRACKET_NANOS).then(|| (counter, before.saturating_add(width / 2)))
        })
    }
}
