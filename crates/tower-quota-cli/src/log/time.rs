//! Times in logs.

use jiff::Timestamp;

/// Reads the times of a log's lines. Neighbours often have the same, which is read once.
#[derive(Debug, Default)]
pub(crate) struct TimeReader {
    text: String,
    micros: Option<u64>,
}

/// Numbers below are seconds since 1970, those above milliseconds, microseconds or nanoseconds.
const MOST_SECONDS: u64 = 100_000_000_000;

impl TimeReader {
    /// Returns the microseconds since 1970 of a time as text, or `None` if it is not understood.
    ///
    /// Forms: `10/Oct/2000:13:55:36 -0700`, `2000-10-10T13:55:36.123Z`, `2000-10-10 13:55:36+02:00`, and seconds since
    /// 1970 with or without a fraction, or milliseconds, microseconds or nanoseconds.
    pub(crate) fn micros(&mut self, text: &str) -> Option<u64> {
        if self.text != text {
            self.text.clear();
            self.text.push_str(text);
            self.micros = parse(text);
        }
        self.micros
    }
}

fn parse(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    {
        return number(text);
    }
    let timestamp = match bytes.get(2) {
        Some(b'/') => jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text)
            .ok()?
            .to_timestamp()
            .ok()?,
        _ => match text.parse() {
            Ok(timestamp) => timestamp,
            // Without an offset it is UTC.
            Err(_) => text
                .parse::<jiff::civil::DateTime>()
                .ok()?
                .to_zoned(jiff::tz::TimeZone::UTC)
                .ok()?
                .timestamp(),
        },
    };
    u64::try_from(timestamp.as_microsecond()).ok()
}

fn number(text: &str) -> Option<u64> {
    let (before, fraction) = text.split_once('.').unwrap_or((text, ""));
    let before: u64 = before.parse().ok()?;
    // From the unit to microseconds: a factor, and the digits of the fraction that count.
    let (factor, digits) = match before {
        0..MOST_SECONDS => (1_000_000, 6),
        _ if before < MOST_SECONDS * 1_000 => (1_000, 3),
        _ if before < MOST_SECONDS * 1_000_000 => (1, 0),
        _ => return Some(before / 1_000),
    };
    let mut micros = 0;
    for digit in fraction
        .bytes()
        .chain(core::iter::repeat(b'0'))
        .take(digits)
    {
        micros = micros * 10 + u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    before.checked_mul(factor)?.checked_add(micros)
}

/// Returns a time as text, in UTC: `2025-11-21 00:00:00`.
pub(crate) fn text(micros: u64) -> String {
    let timestamp = i64::try_from(micros)
        .ok()
        .and_then(|micros| Timestamp::from_microsecond(micros).ok());
    timestamp.map_or_else(
        || format!("{micros} us"),
        |timestamp| timestamp.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_each_form_are_read() {
        let mut reader = TimeReader::default();
        for (text, micros) in [
            ("10/Oct/2000:13:55:36 -0700", Some(971_211_336_000_000)),
            ("2000-10-10T20:55:36Z", Some(971_211_336_000_000)),
            ("2000-10-10T13:55:36.250-07:00", Some(971_211_336_250_000)),
            ("2000-10-10 20:55:36", Some(971_211_336_000_000)),
            ("971211336", Some(971_211_336_000_000)),
            ("971211336.5", Some(971_211_336_500_000)),
            ("971211336.0000019", Some(971_211_336_000_001)),
            ("971211336250", Some(971_211_336_250_000)),
            ("971211336250.5", Some(971_211_336_250_500)),
            ("971211336250000", Some(971_211_336_250_000)),
            ("971211336250000000", Some(971_211_336_250_000)),
            ("yesterday", None),
            ("", None),
            ("99/Oct/2000:13:55:36 -0700", None),
        ] {
            assert_eq!(reader.micros(text), micros, "{text}");
            assert_eq!(reader.micros(text), micros, "{text} again");
        }
    }
}
