use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Reads the times of lines, and caches the last time, since neighbours are often equal.
#[derive(Debug, Default)]
pub(crate) struct TimeReader {
    text: String,
    micros: Option<u64>,
}

impl TimeReader {
    /// Returns a time in microseconds since 1970, if the format is known.
    ///
    /// Formats: `10/Oct/2000:13:55:36 -0700`, `2000-10-10T13:55:36.123Z`, `2000-10-10
    /// 13:55:36+02:00`, seconds since 1970 with or without a fraction, and milliseconds,
    /// microseconds or nanoseconds since 1970.
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
    let timestamp = if bytes.get(2) == Some(&b'/') {
        let time = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text);
        time.ok()?.to_timestamp().ok()?
    } else if let Ok(timestamp) = text.parse() {
        timestamp
    } else {
        // Read a time without an offset as UTC.
        let time = text.parse::<jiff::civil::DateTime>().ok()?;
        time.to_zoned(TimeZone::UTC).ok()?.timestamp()
    };
    u64::try_from(timestamp.as_microsecond()).ok()
}

/// Reads seconds, milliseconds, microseconds or nanoseconds since 1970, recognized by their length.
fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = match whole.len() {
        0 => return None,
        1..=11 => 6,
        12..=14 => 3,
        15..=17 => 0,
        nanos => return whole[..nanos - 3].parse().ok(),
    };
    format!("{whole}{fraction:0<digits$.digits$}").parse().ok()
}

pub(crate) fn text(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
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
