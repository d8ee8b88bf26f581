use core::cell::Cell;
use core::time::Duration;
use std::time::Instant;

#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    const SAMPLE: u32 = 64;

    #[expect(
        clippy::disallowed_methods,
        reason = "a duration for operators, on which no count depends"
    )]
    pub(crate) fn start() -> Self {
        Self(Some(Instant::now()))
    }

    /// Times one of 64 decisions of a thread, including the first. Without the feature `metrics`, times none.
    #[inline]
    pub(crate) fn sample() -> Self {
        thread_local! {
            static DECISIONS: Cell<u32> = const { Cell::new(0) };
        }
        if !cfg!(feature = "metrics") {
            return Self(None);
        }
        let number = DECISIONS.get();
        DECISIONS.set(number.wrapping_add(1));
        if number.is_multiple_of(Self::SAMPLE) {
            Self::start()
        } else {
            Self(None)
        }
    }

    pub(crate) fn elapsed(self) -> Option<Duration> {
        self.0.map(|start| start.elapsed())
    }
}
