//! The busiest second and the busiest minute.

/// Counts by a span of time, and keeps the largest count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    span_micros: u64,
    current: (u64, u64),
    most: (u64, u64),
}

impl Peak {
    pub(crate) const SECOND: u64 = 1_000_000;

    /// Makes a peak over spans of this many microseconds, aligned to 1970.
    pub(crate) const fn over(span_micros: u64) -> Self {
        Self {
            span_micros,
            current: (0, 0),
            most: (0, 0),
        }
    }

    /// Counts one request. Times do not go back.
    pub(crate) fn count(&mut self, micros: u64) {
        let start = micros - micros % self.span_micros;
        let count = if self.current.0 == start {
            self.current.1 + 1
        } else {
            1
        };
        self.current = (start, count);
        if count > self.most.1 {
            self.most = self.current;
        }
    }

    /// Returns the start of the busiest span in microseconds since 1970, and its count.
    pub(crate) const fn most(&self) -> (u64, u64) {
        self.most
    }
}
