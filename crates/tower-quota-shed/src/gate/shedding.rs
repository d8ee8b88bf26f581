use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// The time without a refusal after which shedding has ended, so that the log does not flap.
const QUIET: Duration = Duration::from_secs(10);

/// Whether the service sheds requests, and how many requests it gets for each request that it answers.
#[derive(Default)]
#[repr(align(128))] // Refusals write these counts, and admissions read the fields next to them.
pub(crate) struct Shedding {
    /// The milliseconds at which shedding ends, or 0 after its end.
    until: AtomicU64,
    second: AtomicU64,
    refused: AtomicU64,
    answered: AtomicU64,
    /// The requests for each hundred answers of the last second, or 0 before the first second.
    demand: AtomicU64,
}

impl Shedding {
    /// Counts a refusal. Returns the demand, and whether shedding begins.
    pub(super) fn refused(&self, now: Duration) -> (u64, bool) {
        self.turn(now);
        self.refused.fetch_add(1, Relaxed);
        let until = millis(now + QUIET);
        // Most refusals share their millisecond with another one, so they only read.
        if self.until.load(Relaxed) == until {
            return (self.demand.load(Relaxed), false);
        }
        let before = self.until.swap(until, Relaxed);
        let begins = before <= millis(now);
        if begins && before > 0 {
            log_end();
        }
        (self.demand.load(Relaxed), begins)
    }

    /// Counts an answer while the service sheds requests, and logs the end of shedding.
    pub(super) fn answered(&self, now: Duration) {
        let until = self.until.load(Relaxed);
        if until == 0 {
            return;
        }
        self.turn(now);
        self.answered.fetch_add(1, Relaxed);
        let has_ended = millis(now) >= until;
        if has_ended
            && self
                .until
                .compare_exchange(until, 0, Relaxed, Relaxed)
                .is_ok()
        {
            log_end();
        }
    }

    pub(crate) fn is_on(&self, now: Duration) -> bool {
        millis(now) < self.until.load(Relaxed)
    }

    /// Computes the demand when a second has passed. After a pause, the demand is unknown.
    fn turn(&self, now: Duration) {
        let second = now.as_secs();
        if second <= self.second.load(Relaxed) {
            return;
        }
        let before = self.second.fetch_max(second, Relaxed);
        if before < second {
            let refused = self.refused.swap(0, Relaxed);
            let answered = self.answered.swap(0, Relaxed);
            let demand = 100 * (refused + answered) / answered.max(1);
            let is_recent = before + 1 == second;
            self.demand
                .store(if is_recent { demand } else { 0 }, Relaxed);
        }
    }
}

fn log_end() {
    tracing::info!("the service no longer sheds requests");
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
