use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

/// A share in millionths: `0.1%` is 1,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share(u64);

impl Share {
    const ALL: u64 = 1_000_000;

    /// Returns the share of a part, rounded up, so a small part never appears as zero.
    pub(super) fn of(part: u64, all: u64) -> Self {
        let millionths =
            (u128::from(part) * u128::from(Self::ALL)).div_ceil(u128::from(all.max(1)));
        Self(u64::try_from(millionths).unwrap_or(Self::ALL))
    }

    pub(super) fn covers(self, part: u64, all: u64) -> bool {
        u128::from(part) * u128::from(Self::ALL) <= u128::from(all) * u128::from(self.0)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a share: write one such as 0.1%");
        let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let (percents, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Accept four digits after the point, because a percent is 10,000 millionths.
        if number.is_empty()
            || fraction.len() > 4
            || !fraction
                .bytes()
                .chain(percents.bytes())
                .all(|byte| byte.is_ascii_digit())
        {
            return Err(wrong());
        }
        let digits: u64 = format!("{percents}{fraction:0<4}")
            .parse()
            .map_err(|_| wrong())?;
        if digits <= Self::ALL {
            Ok(Self(digits))
        } else {
            Err(format!("{text:?} is more than 100%"))
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        let digits = if self.0 >= 10_000 { 2 } else { 4 };
        let end = text.find('.').unwrap_or(0) + 1 + digits;
        let short = text[..end].trim_end_matches('0').trim_end_matches('.');
        write!(f, "{short} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_reads_and_shows_percents() {
        for (text, millionths, shown) in [
            ("0.1%", 1_000, "0.1 %"),
            ("12.345 %", 123_450, "12.34 %"),
            ("100%", 1_000_000, "100 %"),
            ("0%", 0, "0 %"),
        ] {
            let share: Share = text.parse().unwrap();
            assert_eq!(
                (share, share.to_string()),
                (Share(millionths), shown.to_owned()),
                "{text}"
            );
        }
        for wrong in ["", "1", "%", "101%", "1.00001%", "-1%", "a%"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
        assert_eq!(Share::of(1, 3_000_000).to_string(), "0.0001 %");
        assert!(Share(1_000).covers(1, 1_000) && !Share(1_000).covers(2, 1_000));
    }
}
