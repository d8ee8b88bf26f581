//! Limits a server to a share of a processor, so that this machine can overload it.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tower_quota_testkit::RedisServer;

use crate::timing::now;

/// The time between two adjustments: the server runs and stops for fractions of a millisecond.
const STEP: Duration = Duration::from_micros(100);
/// Unused time that the server may catch up on.
const CREDIT: f64 = 0.001;

/// Holds a server to a share of a processor until it is dropped.
pub(super) struct Throttle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Throttle {
    pub(super) fn start(server: &RedisServer, share: f64) -> std::io::Result<Self> {
        let mut signals = Signals::to(server.pid())?;
        let cpu_file = format!("/proc/{}/schedstat", server.pid());
        // Its first number is the time that the process has run, in nanoseconds.
        let cpu = move || {
            let text = fs::read_to_string(&cpu_file).unwrap_or_default();
            text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut at, mut used, mut credit) = (now(), cpu(), 0.0_f64);
            while !stopped.load(Ordering::Relaxed) {
                #[expect(clippy::disallowed_methods, reason = "the share is a share of real time")]
                thread::sleep(STEP);
                let (at_now, used_now) = (now(), cpu());
                credit = (credit + (at_now - at).as_secs_f64() * share).min(CREDIT) - (used_now - used);
                (at, used) = (at_now, used_now);
                signals.send(if credit > 0.0 { "CONT" } else { "STOP" });
            }
            signals.send("CONT");
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A shell that sends the signals it reads: a process per signal would take longer than a step.
struct Signals {
    shell: Child,
    input: Option<ChildStdin>,
    last: &'static str,
}

impl Signals {
    fn to(process: u32) -> std::io::Result<Self> {
        let script = format!("while read -r signal; do kill -\"$signal\" {process}; done");
        let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn()?;
        let input = shell.stdin.take();
        Ok(Self { shell, input, last: "CONT" })
    }

    fn send(&mut self, signal: &'static str) {
        if self.last != signal
            && let Some(input) = &mut self.input
            && writeln!(input, "{signal}").is_ok()
        {
            self.last = signal;
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The shell ends with its input.
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}
