use std::time::Duration;

use super::settings::LimitSettings;
use super::window::{Window, nanoseconds};

/// The next level, and the times of its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) level: usize,
    /// The least length of the window.
    pub(crate) least: Duration,
}

/// The search for the highest limit whose last places still bring answers.
#[derive(Debug)]
pub(crate) struct Search {
    settings: LimitSettings,
    pub(crate) limit: usize,
    /// The last window at the limit, while the lower level is in force.
    upper: Option<Window>,
    is_rising: bool,
    /// The steps since the direction changed.
    steps: u32,
    /// The mean latency of the last window.
    pub(crate) latency: Option<Duration>,
    /// The mean latency of the last window with a short queue or without one.
    pub(crate) base: Option<Duration>,
}

/// A relative growth of answers pays for a growth of requests in progress that is so many times larger.
///
/// Workers that are all busy answer at the same rate at both levels, and workers that are never all busy answer at a rate in
/// proportion. Between, 16 workers settle at a limit of 25 with a lower level of 15.
const WORTH: i128 = 6;
/// The lower level has two fifths fewer requests in progress.
const DEPTH: (u128, u128) = (2, 5);
/// The completed requests that make a window at the lower level significant. A window at the limit takes three times as many,
/// so that the service spends little time at the lower level.
const ENOUGH: u64 = 150;
/// The same in mean latencies.
const LATENCIES: u32 = 4;
const UPPER: u32 = 3;
const SHORTEST: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_secs(10);
/// A step is a 16th of the limit. After four steps in one direction it grows to a quarter.
const SMALL: u32 = 4;
const LARGE: u32 = 2;
const PATIENCE: u32 = 4;

impl Search {
    pub(crate) const fn new(settings: LimitSettings) -> Self {
        Self {
            limit: settings.start,
            settings,
            upper: None,
            is_rising: true,
            // The first limit is a guess, so the first steps are large.
            steps: u32::MAX,
            latency: None,
            base: None,
        }
    }

    /// Judges what completed in a window. Returns the next level, or `None` if the window needs more requests.
    pub(crate) fn step(&mut self, window: &Window) -> Option<Next> {
        let binds = window.binds();
        let enough = if self.upper.is_some() { 1 } else { UPPER };
        if binds && window.completed < ENOUGH * u64::from(enough) {
            return None;
        }
        self.latency = window.latency().or(self.latency);
        let upper = self.upper.take();
        if !binds || upper.is_some() {
            self.base = self.latency;
        }
        match upper {
            Some(upper) if binds => self.judge(&upper, window),
            // Without a binding limit, no level is better than another one.
            None if binds => {
                let lower = self.lower(window);
                if lower < self.limit {
                    self.upper = Some(*window);
                    return Some(self.next(lower, 1));
                }
            }
            _ => {}
        }
        Some(self.next(self.limit, UPPER))
    }

    /// Returns the lower level to compare with. Places that are held by response bodies cannot be taken back, so the
    /// difference is a share of the requests that wait for their response.
    fn lower(&self, upper: &Window) -> usize {
        let depth = upper.waiting() * DEPTH.0 / DEPTH.1;
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let least = (self.limit / 2).max(self.settings.floor);
        self.limit.saturating_sub(depth.max(1)).max(least)
    }

    /// Moves the limit up if the upper level was worth its requests in progress, and down otherwise.
    fn judge(&mut self, upper: &Window, lower: &Window) {
        // Idle times in one of the windows make them incomparable.
        if lower.waiting() * 2 < upper.waiting() || upper.waiting() * 2 < lower.waiting() {
            return;
        }
        let in_progress = change(
            [upper.in_progress, lower.completed],
            [lower.in_progress, upper.completed],
        );
        let answers = change(
            [upper.answered(), nanoseconds(lower.span)],
            [lower.answered(), nanoseconds(upper.span)],
        );
        self.go(answers * WORTH > in_progress);
    }

    /// Moves the limit one step.
    fn go(&mut self, is_rising: bool) {
        self.steps = if is_rising == self.is_rising {
            self.steps.saturating_add(1)
        } else {
            1
        };
        self.is_rising = is_rising;
        let shift = SMALL
            .saturating_sub(self.steps.saturating_sub(PATIENCE))
            .max(LARGE);
        let step = (self.limit >> shift).max(1);
        let limit = if is_rising {
            self.limit.saturating_add(step)
        } else {
            self.limit.saturating_sub(step)
        };
        // Above the floor, there is a lower level to compare with.
        let least = self
            .settings
            .floor
            .saturating_add(1)
            .min(self.settings.ceiling);
        self.limit = limit.clamp(least, self.settings.ceiling);
    }

    fn next(&self, level: usize, windows: u32) -> Next {
        let latency = self.latency.unwrap_or_default();
        let least = latency.saturating_mul(LATENCIES * windows);
        Next {
            level,
            least: least.clamp(SHORTEST, LONGEST),
        }
    }
}

/// Returns the difference of two products, in thousandths of their mean.
fn change([one, two]: [u64; 2], [three, four]: [u64; 2]) -> i128 {
    let first = i128::from(one) * i128::from(two);
    let second = i128::from(three) * i128::from(four);
    (first - second) * 2_000 / (first + second).max(1)
}
