//! Settings of the service.

use core::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use http::HeaderName;

/// How the service answers.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_server::envoy::EnvoyOptions;
///
/// let mut options = EnvoyOptions::default();
/// assert_eq!(options.deadline, Duration::from_millis(15));
/// options.headers = true;
/// ```
#[derive(Clone, Debug, Args)]
#[non_exhaustive]
pub struct EnvoyOptions {
    /// The longest time of a decision, 15 ms by default. Envoy waits for 20 ms by default.
    ///
    /// After the deadline, `on_store_failure` of each limit decides.
    #[arg(skip = Self::default().deadline)]
    pub deadline: Duration,
    /// Lets every call pass, and still counts.
    #[arg(long = "shadow", env = "SHADOW_MODE", value_parser = FalseyValueParser::new())]
    pub is_shadow: bool,
    /// Gives all limits the quota mode, so that a call is over only if all of its limits are exceeded.
    #[arg(long = "quota", env = "QUOTA_MODE", value_parser = FalseyValueParser::new())]
    pub is_quota: bool,
    /// The share of a limit from which the metric `near_limit` counts.
    #[arg(
        long = "near-limit",
        env = "NEAR_LIMIT_RATIO",
        value_name = "RATIO",
        default_value = "0.8",
        value_parser = percent
    )]
    pub near_limit_percent: u64,
    /// Adds the tightest limit to responses as header fields.
    #[arg(long, env = "LIMIT_RESPONSE_HEADERS_ENABLED", value_parser = FalseyValueParser::new())]
    pub headers: bool,
    /// The field with the limit.
    #[arg(
        long,
        env = "LIMIT_LIMIT_HEADER",
        value_name = "FIELD",
        default_value = LIMIT,
        value_parser = field
    )]
    pub limit_header: String,
    /// The field with the remaining requests.
    #[arg(
        long,
        env = "LIMIT_REMAINING_HEADER",
        value_name = "FIELD",
        default_value = REMAINING,
        value_parser = field
    )]
    pub remaining_header: String,
    /// The field with the seconds until the limit is full or admits a request again.
    #[arg(
        long,
        env = "LIMIT_RESET_HEADER",
        value_name = "FIELD",
        default_value = RESET,
        value_parser = field
    )]
    pub reset_header: String,
    /// Adds the descriptors and the metadata of limits to responses.
    #[arg(long, env = "RESPONSE_DYNAMIC_METADATA", value_parser = FalseyValueParser::new())]
    pub dynamic_metadata: bool,
    /// The body of the responses that the gateway makes of refused calls.
    #[arg(
        long,
        env = "TOWER_QUOTA_REFUSAL_BODY",
        value_name = "TEXT",
        default_value = ""
    )]
    pub refusal_body: String,
}

const LIMIT: &str = "RateLimit-Limit";
const REMAINING: &str = "RateLimit-Remaining";
const RESET: &str = "RateLimit-Reset";

impl Default for EnvoyOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(15),
            is_shadow: false,
            is_quota: false,
            near_limit_percent: 80,
            headers: false,
            limit_header: LIMIT.into(),
            remaining_header: REMAINING.into(),
            reset_header: RESET.into(),
            dynamic_metadata: false,
            refusal_body: String::new(),
        }
    }
}

/// Reads a ratio as a percentage.
fn percent(text: &str) -> Result<u64, String> {
    let wrong = || "write a number from 0 to 1 with at most two decimals, such as 0.8".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 2 {
        return Err(wrong());
    }
    let percent = format!("{whole}{decimals:0<2}")
        .parse()
        .map_err(|_| wrong())?;
    match percent {
        0..=100 => Ok(percent),
        _ => Err(wrong()),
    }
}

fn field(text: &str) -> Result<String, String> {
    let name = text.parse::<HeaderName>().map(|_| text.to_owned());
    name.map_err(|_| "write the name of a field, such as RateLimit-Limit".into())
}
