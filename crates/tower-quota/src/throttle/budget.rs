//! Bounds retries, so that they do not multiply the load of an overloaded remote.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::pushbacks::now;

/// The units of a retry. At one retry per second, each microsecond adds one unit.
const RETRY: u64 = 1_000_000;

const SAVED_SECONDS: u64 = 10;

const SAVED_RETRIES: u64 = 100;

pub(super) struct Budget {
    percent: u64,
    per_second: u64,
    balance: Mutex<Balance>,
}

struct Balance {
    units: u64,
    changed: Instant,
}

impl Budget {
    pub(super) fn new(percent: u32, per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self {
            percent: u64::from(percent),
            per_second,
            balance: Mutex::new(Balance {
                units: per_second * SAVED_SECONDS * RETRY,
                changed: now(),
            }),
        }
    }

    pub(super) fn deposit(&self) {
        self.add(&mut self.lock(), self.percent * RETRY / 100);
    }

    pub(super) fn withdraw(&self) -> bool {
        let mut balance = self.lock();
        let now = now();
        let micros = now.duration_since(balance.changed).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        balance.changed = now;
        self.add(&mut balance, micros.saturating_mul(self.per_second));
        match balance.units.checked_sub(RETRY) {
            Some(rest) => {
                balance.units = rest;
                true
            }
            None => false,
        }
    }

    fn add(&self, balance: &mut Balance, units: u64) {
        let most = SAVED_RETRIES.max(self.per_second * SAVED_SECONDS) * RETRY;
        balance.units = balance.units.saturating_add(units).min(most);
    }

    fn lock(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::Budget;

    fn withdrawn(budget: &Budget) -> u32 {
        (0..).find(|_| !budget.withdraw()).unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn budget_is_share_and_floor() {
        let budget = Budget::new(10, 1);
        assert_eq!(withdrawn(&budget), 10, "ten seconds are saved at the start");
        for _ in 0..500 {
            budget.deposit();
        }
        assert_eq!(withdrawn(&budget), 50);
        tokio::time::advance(Duration::from_millis(2_500)).await;
        assert_eq!(withdrawn(&budget), 2);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(withdrawn(&budget), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn savings_are_bounded() {
        let budget = Budget::new(10, 1);
        tokio::time::advance(Duration::from_secs(1_000_000_000)).await;
        for _ in 0..100_000 {
            budget.deposit();
        }
        assert_eq!(withdrawn(&budget), 100);
        assert_eq!(withdrawn(&Budget::new(0, 0)), 0);
        let largest = Budget::new(u32::MAX, u32::MAX);
        largest.deposit();
        assert!(largest.withdraw());
    }
}
