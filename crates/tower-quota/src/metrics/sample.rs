use core::cell::Cell;

const SAMPLE: u32 = 64;

/// Returns whether to time a decision, which is one of 64 decisions of a thread, including the first.
#[inline]
pub(crate) fn sample() -> bool {
    thread_local! {
        static DECISIONS: Cell<u32> = const { Cell::new(0) };
    }
    let number = DECISIONS.get();
    DECISIONS.set(number.wrapping_add(1));
    number.is_multiple_of(SAMPLE)
}
