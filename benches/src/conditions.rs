//! The conditions of a run: figures mean nothing without them.

use std::error::Error;
use std::fmt;
use std::fs;
use std::thread;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tower_quota_core::{Clock, MonotonicClock};

/// The conditions that are published beside figures.
#[derive(Serialize, Deserialize)]
pub(crate) struct Conditions {
    /// The system's name of the processor.
    cpu: String,
    /// Cores that the process may use.
    cores: usize,
    /// The day of the run, in UTC.
    date: String,
    /// The compiler, with its version.
    rustc: String,
    /// True for a short run.
    quick: bool,
}

impl Conditions {
    /// Returns the conditions of this process.
    pub(crate) fn present(quick: bool) -> Self {
        Self {
            cpu: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            date: today().unwrap_or_else(|| "unknown date".to_owned()),
            rustc: env!("BENCH_RUSTC").to_owned(),
            quick,
        }
    }
}

/// Prints the conditions of a long run as JSON.
pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(&Conditions::present(false))?);
    Ok(())
}

/// The conditions in one line.
impl fmt::Display for Conditions {
    fn fmt(&self, line: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            cores,
            date,
            rustc,
            quick,
        } = self;
        // Of "rustc 1.95.0 (59807616e 2026-04-14)" the version says enough.
        let compiler = rustc.split(" (").next().unwrap_or_default();
        let length = if *quick {
            "short run (--quick)"
        } else {
            "long run"
        };
        write!(line, "{cpu}, {cores} cores, {compiler}, {date}, {length}")
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let (_, name) = text
        .lines()
        .find(|line| line.starts_with("model name"))?
        .split_once(':')?;
    Some(name.trim().to_owned())
}

/// Returns the day by tower-quota's own clock, the one place that reads the machine's.
fn today() -> Option<String> {
    let micros = i64::try_from(MonotonicClock::new().now().as_micros()).ok()?;
    Some(
        Timestamp::from_microsecond(micros)
            .ok()?
            .strftime("%F")
            .to_string(),
    )
}
