use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

/// Flags of logs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Logs")]
#[non_exhaustive]
pub struct LogFlags {
    /// The lowest level, or directives such as "warn,tower_quota_server=debug".
    #[arg(
        long,
        env = "LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info",
        value_parser = level
    )]
    pub log_level: String,
    /// The format of a line.
    #[arg(
        long,
        env = "LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        ignore_case = true
    )]
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// An object a line, for collectors.
    Json,
}

/// Checks the directives. Envoy Gateway and envoyproxy/ratelimit know more names of levels.
fn level(text: &str) -> Result<String, String> {
    let fix = "write error, warn, info, debug or trace";
    let mut directives = Vec::new();
    for directive in text.split(',') {
        let directive = match directive.to_ascii_lowercase().as_str() {
            "fatal" | "panic" | "critical" => "error",
            "warning" => "warn",
            _ => directive,
        };
        // The filter would read another word as the name of a module, and silence all others.
        let is_word = directive.chars().all(char::is_alphanumeric);
        if is_word && directive.parse::<LevelFilter>().is_err() {
            return Err(format!("{directive:?} is not a level: {fix}"));
        }
        directives.push(directive);
    }
    let level = directives.join(",");
    match tracing_subscriber::EnvFilter::try_new(&level) {
        Ok(_) => Ok(level),
        Err(error) => Err(format!("{error}: {fix}")),
    }
}
