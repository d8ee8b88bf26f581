//! Logs of the program.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::options::{LogFlags, LogFormat};

/// Writes logs to the standard error, unless the process has another subscriber already.
pub fn install(flags: &LogFlags) {
    let logs = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&flags.log_level))
        .with_writer(io::stderr)
        .with_ansi(false);
    let _ = match flags.log_format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
}
