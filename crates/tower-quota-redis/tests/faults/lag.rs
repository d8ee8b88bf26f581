//! Measures how late this machine's timers are, so that a loaded machine does not look like a fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Clock, MonotonicClock};

use crate::rig::pause;

const TICK: Duration = Duration::from_millis(5);
/// The number of tickers. A delay of a request at its deadline then delays a tick too.
const TICKERS: usize = 4;

/// Tasks that repeatedly wait for a short time, as requests wait for their deadlines. A drop ends
/// the tasks.
pub(crate) struct Watchdog {
    worst: Arc<AtomicU64>,
    _tickers: JoinSet<()>,
}

impl Watchdog {
    pub(crate) fn start() -> Self {
        let worst = Arc::new(AtomicU64::new(0));
        let mut tickers = JoinSet::new();
        for _ in 0..TICKERS {
            tickers.spawn(tick(Arc::clone(&worst)));
        }
        Self {
            worst,
            _tickers: tickers,
        }
    }

    /// Returns the longest delay of a tick so far.
    pub(crate) fn worst(&self) -> Duration {
        Duration::from_micros(self.worst.load(Ordering::Relaxed))
    }
}

async fn tick(worst: Arc<AtomicU64>) {
    let clock = MonotonicClock::new();
    loop {
        let began = clock.now();
        pause(TICK).await;
        let late = clock.now().since(began).saturating_sub(TICK);
        worst.fetch_max(u64::try_from(late.as_micros()).unwrap(), Ordering::Relaxed);
    }
}
