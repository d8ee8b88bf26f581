use core::time::Duration;
use std::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
/// The number of seconds. A longer memory would keep the distance of a server that has moved away.
const SECONDS: usize = 3;

/// The shortest call of the last seconds, which is the distance of the server without a queue.
#[derive(Debug)]
pub(super) struct Distance {
    /// The shortest call of each second, the current second first.
    shortest: [Duration; SECONDS],
    began: Option<Instant>,
    most: Duration,
}

impl Distance {
    pub(super) const fn new(most: Duration) -> Self {
        Self {
            shortest: [most; SECONDS],
            began: None,
            most,
        }
    }

    pub(super) fn get(&self) -> Duration {
        self.shortest.into_iter().min().unwrap_or(self.most)
    }

    /// Forgets all calls but one.
    pub(super) fn restart(&mut self, took: Duration) {
        self.shortest = [took.min(self.most); SECONDS];
    }

    pub(super) fn note(&mut self, took: Duration, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let seconds = now.saturating_duration_since(began).as_secs();
        if seconds > 0 {
            self.began = Some(began + SECOND * u32::try_from(seconds).unwrap_or(u32::MAX));
            let gone = usize::try_from(seconds).unwrap_or(SECONDS).min(SECONDS);
            self.shortest.rotate_right(gone);
            self.shortest[..gone].fill(self.most);
        }
        self.shortest[0] = self.shortest[0].min(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn shortest_call_counts_for_seconds() {
        let (start, millis) = (now(), Duration::from_millis);
        let mut distance = Distance::new(millis(50));
        assert_eq!(distance.get(), millis(50));
        for (second, took, expected) in [
            (0, 4, 4),
            (0, 9, 4),
            (1, 3, 3),
            (2, 20, 3),
            (3, 20, 3),
            (4, 20, 20),
            (5, 60, 20),
            (60, 8, 8),
        ] {
            distance.note(millis(took), start + second * SECOND);
            assert_eq!(distance.get(), millis(expected), "second {second}");
        }
    }

    #[test]
    fn restarted_distance_grows_again() {
        let (start, millis) = (now(), Duration::from_millis);
        let mut distance = Distance::new(millis(50));
        distance.note(millis(4), start);
        distance.restart(millis(20));
        assert_eq!(distance.get(), millis(20));
        for second in 1..4 {
            distance.note(millis(36), start + second * SECOND);
        }
        assert_eq!(distance.get(), millis(36));
        distance.restart(millis(60));
        assert_eq!(distance.get(), millis(50));
    }
}
