//! Windows of a minute, ten minutes and an hour, made of slices of ten seconds.

use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use tower_quota_core::{Key, KeyHasher, Name};

use super::client::TopClient;
use super::sketch::{Sketch, Summary};

const SLICE: Duration = Duration::from_secs(10);
/// The slices of a minute.
const SLICES: u64 = 6;
/// The minutes of ten minutes.
const MINUTES: u64 = 10;
/// The spans of ten minutes of an hour.
const TENS: u64 = 6;

/// A window of time that ends now.
///
/// It is made of slices, so it is longer by up to ten seconds, a minute, or ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopWindow {
    /// The last minute.
    Minute,
    /// The last ten minutes.
    TenMinutes,
    /// The last hour.
    Hour,
}

/// The clients of the current slice, and of the ended ones.
pub(super) struct Windows {
    hasher: KeyHasher,
    current: Sketch,
    /// The end of the current slice.
    end: Instant,
    /// The number of ended slices.
    ended: u64,
    slices: VecDeque<Summary>,
    minutes: VecDeque<Summary>,
    tens: VecDeque<Summary>,
}

impl Windows {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            hasher: KeyHasher::random(),
            current: Sketch::new(TopClient::MOST),
            end: now + SLICE,
            ended: 0,
            slices: VecDeque::new(),
            minutes: VecDeque::new(),
            tens: VecDeque::new(),
        }
    }

    pub(super) fn count(
        &mut self,
        limit: Name,
        key: &Key<'_>,
        requests: u64,
        now: Instant,
        until: Instant,
    ) {
        self.advance(now);
        self.current
            .count(&self.hasher, (limit, key), requests, now, until);
    }

    pub(super) fn top(&mut self, window: TopWindow, now: Instant) -> Vec<TopClient> {
        self.advance(now);
        let current = self.current.summary();
        let latest = |ring: &VecDeque<Summary>, most: u64| {
            ring.iter()
                .rev()
                .take(usize::try_from(most).unwrap_or(usize::MAX))
                .cloned()
                .collect::<Vec<_>>()
        };
        let mut parts = vec![current];
        match window {
            TopWindow::Minute => parts.extend(latest(&self.slices, SLICES)),
            TopWindow::TenMinutes => {
                parts.extend(latest(&self.slices, self.ended % SLICES));
                parts.extend(latest(&self.minutes, MINUTES));
            }
            TopWindow::Hour => {
                parts.extend(latest(&self.slices, self.ended % SLICES));
                parts.extend(latest(&self.minutes, self.ended / SLICES % MINUTES));
                parts.extend(latest(&self.tens, TENS));
            }
        }
        Summary::sum(&parts, TopClient::MOST).into_clients()
    }

    /// Ends the slices that have passed.
    fn advance(&mut self, now: Instant) {
        const LONGEST: Duration = Duration::from_secs(4_200);
        if now > self.end + LONGEST {
            *self = Self::new(now);
        }
        while now >= self.end {
            self.end += SLICE;
            self.ended += 1;
            push(&mut self.slices, self.current.take(), SLICES);
            if self.ended.is_multiple_of(SLICES) {
                push(
                    &mut self.minutes,
                    Summary::sum(&self.slices, TopClient::MOST),
                    MINUTES,
                );
            }
            if self.ended.is_multiple_of(SLICES * MINUTES) {
                push(
                    &mut self.tens,
                    Summary::sum(&self.minutes, TopClient::MOST),
                    TENS,
                );
            }
        }
    }
}

/// Adds a summary to the latest ones.
fn push(ring: &mut VecDeque<Summary>, summary: Summary, most: u64) {
    if ring.len() as u64 == most {
        ring.pop_front();
    }
    ring.push_back(summary);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key<'static> = Key::EVERYONE;

    /// Counts one request at each of these seconds, and returns the numbers of each window at another.
    fn counts(requests: impl IntoIterator<Item = u64>, at: u64) -> [u64; 3] {
        let start = crate::clients::now();
        let instant = |seconds: u64| start + Duration::from_secs(seconds);
        let mut windows = Windows::new(start);
        for second in requests {
            windows.count(
                Name::new("limit"),
                &KEY,
                1,
                instant(second),
                instant(second),
            );
        }
        [TopWindow::Minute, TopWindow::TenMinutes, TopWindow::Hour].map(|window| {
            windows
                .top(window, instant(at))
                .iter()
                .map(TopClient::at_least)
                .sum()
        })
    }

    #[test]
    fn windows_hold_at_least_their_length() {
        // One request a second for two hours.
        for at in (7_200..7_800).step_by(7) {
            let [minute, ten, hour] = counts(0..at, at);
            assert!((60..=70).contains(&minute), "{minute} at {at}");
            assert!((600..=660).contains(&ten), "{ten} at {at}");
            assert!((3_600..=4_200).contains(&hour), "{hour} at {at}");
        }
    }

    #[test]
    fn windows_end() {
        assert_eq!(counts([5], 6), [1, 1, 1]);
        assert_eq!(counts([5], 71), [0, 1, 1]);
        assert_eq!(counts([5], 661), [0, 0, 1]);
        assert_eq!(counts([5], 4_201), [0, 0, 0]);
        assert_eq!(counts([5, 100_000], 100_001), [1, 1, 1]);
    }
}
