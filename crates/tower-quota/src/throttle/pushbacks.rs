use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tower_quota_core::Key;

const MAX_KEYS: usize = 10_000;

#[derive(Default)]
pub(super) struct Pushbacks(Mutex<HashMap<Key<'static>, Instant>>);

impl Pushbacks {
    pub(super) fn push(&self, key: Key<'static>, pause: Duration) {
        let now = now();
        let until = now + pause;
        let mut keys = self.lock();
        if keys.len() >= MAX_KEYS && !keys.contains_key(&key) {
            keys.retain(|_, until| *until > now);
            if keys.len() >= MAX_KEYS
                && let Some(first) = keys
                    .iter()
                    .min_by_key(|(_, until)| **until)
                    .map(|(key, _)| key.clone())
            {
                keys.remove(&first);
            }
        }
        keys.entry(key)
            .and_modify(|known| *known = until.max(*known))
            .or_insert(until);
    }

    pub(super) fn pause(&self, key: &Key<'static>) -> Option<Duration> {
        let mut keys = self.lock();
        if keys.is_empty() {
            return None;
        }
        let pause = keys.get(key)?.saturating_duration_since(now());
        if pause.is_zero() {
            keys.remove(key);
        }
        (!pause.is_zero()).then_some(pause)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key<'static>, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits are measured on the clock of the runtime that ends them"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_quota_core::Name;

    #[tokio::test(start_paused = true)]
    async fn full_map_drops_earliest_end() {
        let pushbacks = Pushbacks::default();
        let key = |number| Key::number(Name::new("key"), number);
        for number in 0..=MAX_KEYS as u64 {
            pushbacks.push(key(number), Duration::from_secs(number + 1));
        }
        assert_eq!(pushbacks.lock().len(), MAX_KEYS);
        assert_eq!(pushbacks.pause(&key(0)), None);
        assert_eq!(pushbacks.pause(&key(1)), Some(Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn shorter_pushback_changes_nothing() {
        let pushbacks = Pushbacks::default();
        pushbacks.push(Key::EVERYONE, Duration::from_secs(9));
        pushbacks.push(Key::EVERYONE, Duration::from_secs(2));
        assert_eq!(
            pushbacks.pause(&Key::EVERYONE),
            Some(Duration::from_secs(9))
        );
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(pushbacks.pause(&Key::EVERYONE), None);
        assert!(pushbacks.lock().is_empty());
    }
}
