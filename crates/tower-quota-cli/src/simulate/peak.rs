use serde::Serialize;

use crate::log::time;

/// Counts requests by a span of time, and keeps the largest count.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(into = "PeakReport")]
pub(super) struct Peak {
    span_micros: u64,
    current: (u64, u64),
    most: (u64, u64),
}

#[derive(Serialize)]
struct PeakReport {
    requests: u64,
    at: String,
}

impl Peak {
    /// Creates a peak over spans of `seconds`, aligned to 1970.
    pub(super) const fn over(seconds: u64) -> Self {
        Self {
            span_micros: seconds * 1_000_000,
            current: (0, 0),
            most: (0, 0),
        }
    }

    /// Counts a request, and returns the largest count. Times never go backwards.
    pub(super) fn count(&mut self, micros: u64) -> u64 {
        let start = micros - micros % self.span_micros;
        if self.current.0 != start {
            self.current = (start, 0);
        }
        self.current.1 += 1;
        if self.current.1 > self.most.1 {
            self.most = self.current;
        }
        self.most.1
    }
}

impl Default for Peak {
    fn default() -> Self {
        Self::over(1)
    }
}

impl From<Peak> for PeakReport {
    fn from(peak: Peak) -> Self {
        let (at, requests) = peak.most;
        Self {
            requests,
            at: time::text(at),
        }
    }
}
