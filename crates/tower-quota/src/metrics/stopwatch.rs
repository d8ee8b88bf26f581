use core::cell::Cell;
use core::time::Duration;
use std::time::Instant;

/// Without the feature `metrics`, no decision is timed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    const SAMPLE: u32 = 64;

    #[expect(
        clippy::disallowed_methods,
        reason = "a duration for operators, on which no count depends"
    )]
    pub(crate) fn start() -> Self {
        Self(cfg!(feature = "metrics").then(Instant::now))
    }

    /// Times one of 64 decisions of a thread, including the first.
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

    #[cfg_attr(
        not(feature = "metrics"),
        expect(dead_code, reason = "nothing records it")
    )]
    pub(super) fn elapsed(self) -> Option<Duration> {
        self.0.map(|start| start.elapsed())
    }
}
