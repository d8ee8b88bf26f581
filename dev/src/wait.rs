//! Waits for conditions outside of the process.

use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until a condition holds, and checks it every 20 ms.
///
/// # Panics
/// Panics when it does not hold after 30 s: a test that depends on it must not continue.
#[expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "waits for another process; documented"
)]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > TIMEOUT {
            panic!("timed out after 30 s, waiting until {what}");
        }
        thread::sleep(INTERVAL);
    }
}
