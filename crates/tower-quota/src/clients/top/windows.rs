use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use super::client::TopClient;
use super::sketch::{Seen, Sketch};

const SLICES: u32 = 6;

/// A window that ends now, up to a sixth longer than its name.
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

/// The slices of a window. The present slice comes last.
pub(super) struct Window {
    slices: VecDeque<Sketch>,
    slice: Duration,
    end: Instant,
}

impl TopWindow {
    pub(super) const ALL: [Self; 3] = [Self::Minute, Self::TenMinutes, Self::Hour];

    const fn length(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(60),
            Self::TenMinutes => Duration::from_secs(600),
            Self::Hour => Duration::from_secs(3_600),
        }
    }
}

impl Window {
    pub(super) fn new(window: TopWindow, now: Instant) -> Self {
        let slice = window.length() / SLICES;
        Self {
            slices: VecDeque::from([Sketch::new(TopClient::MOST)]),
            slice,
            end: now + slice,
        }
    }

    pub(super) fn count(&mut self, hash: u64, seen: &Seen<'_>) {
        self.advance(seen.last);
        if let Some(present) = self.slices.back_mut() {
            present.count(hash, seen);
        }
    }

    pub(super) fn top(&mut self, now: Instant) -> Vec<TopClient> {
        self.advance(now);
        Sketch::top(&self.slices, TopClient::MOST)
    }

    fn advance(&mut self, now: Instant) {
        if now >= self.end + self.slice * SLICES {
            self.slices.clear();
            self.end = now;
        }
        while now >= self.end {
            self.end += self.slice;
            self.slices.push_back(Sketch::new(TopClient::MOST));
            if self.slices.len() > SLICES as usize + 1 {
                self.slices.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tower_quota_core::{Key, Name};

    use super::*;

    fn counts(requests: impl IntoIterator<Item = u64> + Clone, at: u64) -> [u64; 3] {
        let start = crate::observe::now();
        let instant = |seconds: u64| start + Duration::from_secs(seconds);
        TopWindow::ALL.map(|length| {
            let mut window = Window::new(length, start);
            for second in requests.clone() {
                let seen = Seen {
                    limit: const { Name::new("limit") },
                    key: Key::EVERYONE,
                    requests: 1,
                    last: instant(second),
                    until: instant(second),
                };
                window.count(1, &seen);
            }
            let top = window.top(instant(at));
            top.iter().map(TopClient::at_least).sum()
        })
    }

    #[test]
    fn windows_hold_at_least_their_length() {
        for at in (7_200..7_800).step_by(7) {
            let [minute, ten, hour] = counts(0..at, at);
            assert!((60..=70).contains(&minute), "{minute} at {at}");
            assert!((600..=700).contains(&ten), "{ten} at {at}");
            assert!((3_600..=4_200).contains(&hour), "{hour} at {at}");
        }
    }

    #[test]
    fn windows_end() {
        assert_eq!(counts([5], 6), [1, 1, 1]);
        assert_eq!(counts([5], 71), [0, 1, 1]);
        assert_eq!(counts([5], 701), [0, 0, 1]);
        assert_eq!(counts([5], 4_201), [0, 0, 0]);
        assert_eq!(counts([5, 100_000], 100_001), [1, 1, 1]);
    }
}
