//! Measurements in a process of their own: a process rarely gives memory back to the system.

use std::env;
use std::error::Error;
use std::fs;
use std::process::Command;

/// Runs this program with these arguments and reads the numbers it prints.
pub(crate) fn ask(arguments: &[&str]) -> Result<Vec<f64>, Box<dyn Error>> {
    numbers(Command::new(env::current_exe()?).args(arguments))
}

/// Does the same at a high priority, if the system permits it.
pub(crate) fn ask_first(arguments: &[&str]) -> Result<Vec<f64>, Box<dyn Error>> {
    numbers(
        Command::new("nice")
            .args(["-n", "-20"])
            .arg(env::current_exe()?)
            .args(arguments),
    )
}

fn numbers(command: &mut Command) -> Result<Vec<f64>, Box<dyn Error>> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.split_whitespace()
        .map(|figure| Ok(figure.parse()?))
        .collect()
}

/// Returns the bytes of this process that are in memory, from `/proc/self/status`.
pub(crate) fn resident() -> f64 {
    status("VmRSS:")
}

/// Returns the peak of the bytes of this process in memory.
pub(crate) fn most_resident() -> f64 {
    status("VmHWM:")
}

/// Returns the bytes in a line of that file, which counts in KiB.
fn status(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or(0.0)
        * 1_024.0
}
