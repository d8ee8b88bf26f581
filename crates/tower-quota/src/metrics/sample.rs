use core::cell::Cell;
use std::time::Instant;

use crate::observe::now;

const SAMPLE: u32 = 64;

/// Returns the time for one of 64 decisions of a thread, including the first.
#[inline]
pub(crate) fn sample() -> Option<Instant> {
    thread_local! {
        static DECISIONS: Cell<u32> = const { Cell::new(0) };
    }
    let number = DECISIONS.get();
    DECISIONS.set(number.wrapping_add(1));
    number.is_multiple_of(SAMPLE).then(now)
}
