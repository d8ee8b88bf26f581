use core::fmt;
use core::str::FromStr;

use super::error::TextError;
use super::key::KeyText;
use super::macros::written_as_text;
use super::quota::QuotaText;

/// The quota of a limit while the store is unavailable, such as `10/second by client_ip`.
///
/// ```
/// use tower_quota_rules::{DegradedText, KeyText};
///
/// let degraded: DegradedText = "10/second burst 20 by client_ip".parse()?;
/// assert_eq!(degraded.quota.to_string(), "10/second burst 20");
/// assert_eq!(degraded.key, Some(KeyText::ClientIp { v4: None, v6: None }));
/// # Ok::<(), tower_quota_rules::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DegradedText {
    /// The quota of each instance.
    pub quota: QuotaText,
    /// The counted key. The default is the key of the limit.
    pub key: Option<KeyText>,
}

impl FromStr for DegradedText {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (quota, key) = match text.split_once(" by ") {
            Some((quota, key)) => (quota, Some(key.parse()?)),
            None => (text, None),
        };
        Ok(Self {
            quota: quota.parse()?,
            key,
        })
    }
}

impl fmt::Display for DegradedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{} by {key}", self.quota),
            None => write!(f, "{}", self.quota),
        }
    }
}

written_as_text!(DegradedText, "a quota, and a key after \"by\", such as \"10/second by client_ip\"", {
    "pattern": "^\\s*[0-9]",
    "examples": ["10/second by client_ip", "10/second"]
});

#[cfg(test)]
mod tests {
    use super::DegradedText;

    #[test]
    fn degraded_quotas_print_back() {
        for text in [
            "10/second by client_ip",
            "10/second burst 20 by header x-api-key",
            "2 at once",
            "5 per 15 minutes sliding_log by code tenant by name",
        ] {
            let read = text.parse::<DegradedText>().map(|read| read.to_string());
            assert_eq!(read, Ok(text.into()));
        }
    }

    #[test]
    fn invalid_degraded_quotas_are_refused() {
        for text in ["", "by client_ip", "10/second by", "10/second by nobody"] {
            assert!(text.parse::<DegradedText>().is_err(), "{text}");
        }
    }
}
