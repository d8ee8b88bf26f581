use serde::{Serialize, Serializer};
use serde_json::json;

use crate::log::time;

/// Counts requests by a span of time, and keeps the largest count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    span_micros: u64,
    current: (u64, u64),
    most: (u64, u64),
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

impl Serialize for Peak {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (at, requests) = self.most;
        json!({ "requests": requests, "at": time::text(at) }).serialize(serializer)
    }
}
