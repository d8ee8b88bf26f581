use core::time::Duration;
use std::time::Instant;

use crate::pause;

const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
const MOST_ATTEMPTS: usize = 8;
/// The time after which a slow attempt gets a second attempt next to it.
const OVERLAP_AFTER: Duration = Duration::from_millis(500);
/// The time without attempts after which the pauses start again at the shortest.
const PAUSES_RESET_AFTER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Attempts {
    pub(super) under_way: usize,
    pub(super) is_waiting: bool,
    in_a_row: u32,
    last: Option<Instant>,
    next: Option<Instant>,
}

impl Attempts {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at().is_none_or(|due| now >= due) && self.under_way < MOST_ATTEMPTS
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        let overlap = self
            .last
            .filter(|_| self.under_way > 0)
            .map(|last| last + OVERLAP_AFTER);
        self.next.max(overlap)
    }

    pub(super) fn reset(&mut self) {
        (self.in_a_row, self.next) = (0, None);
    }

    pub(super) fn begin(&mut self, now: Instant) {
        if self
            .last
            .is_some_and(|last| now.duration_since(last) > PAUSES_RESET_AFTER)
        {
            self.in_a_row = 0;
        }
        self.next = Some(now + pause::with_jitter(SHORTEST_PAUSE, LONGEST_PAUSE, self.in_a_row));
        self.last = Some(now);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.under_way += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn attempts_have_growing_pauses() {
        let (start, mut attempts, mut began) = (now(), Attempts::default(), Vec::new());
        for millis in 0..10_000 {
            let now = start + Duration::from_millis(millis);
            if attempts.is_due(now) {
                attempts.begin(now);
                attempts.under_way -= 1;
                began.push(millis);
            }
        }
        assert!((33..=80).contains(&began.len()), "{began:?}");
        let pauses: Vec<u64> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((25..=51).contains(&pauses[0]), "{pauses:?}");
        assert!(
            pauses[5..].iter().all(|pause| (150..=301).contains(pause)),
            "{pauses:?}"
        );
        let later = start + Duration::from_secs(60);
        assert!(attempts.is_due(later));
        attempts.begin(later);
        attempts.under_way -= 1;
        assert!(
            attempts.is_due(later + SHORTEST_PAUSE),
            "after a calm the first pause is the shortest"
        );
    }

    #[test]
    fn slow_attempts_overlap_up_to_a_bound() {
        let (start, mut attempts) = (now(), Attempts::default());
        attempts.begin(start);
        assert!(!attempts.is_due(start + OVERLAP_AFTER - Duration::from_millis(1)));
        for number in 1..20 {
            let now = start + number * LONGEST_PAUSE.max(OVERLAP_AFTER);
            if attempts.is_due(now) {
                attempts.begin(now);
            }
        }
        assert_eq!(attempts.under_way, MOST_ATTEMPTS);
    }
}
