//! Waiting for something outside the process to come about.

use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until it is so, and looks every 20 ms.
///
/// # Panics
/// When it is still not so after 30 s: a test that depends on it must not go on.
#[expect(clippy::panic, clippy::disallowed_methods, reason = "another process is waited for; documented")]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            panic!("waited in vain until {what}");
        }
        thread::sleep(PAUSE);
    }
}
