//! Limit, remaining and reset in three fields, which tell of one limit only.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::sheet::{Piece, Sheet};

/// The names of three such fields.
#[derive(Debug)]
pub(super) struct Triple {
    pub(super) limit: HeaderName,
    pub(super) remaining: HeaderName,
    pub(super) reset: HeaderName,
}

impl Triple {
    /// Whether the response says already, of an inner limiter, that this many units or fewer are left: its fields stay
    /// then. One of the three without the others is no limiter's word: it neither stays nor keeps ours away.
    pub(super) fn stays(&self, headers: &HeaderMap, remaining: u64) -> bool {
        let told = number(headers, &self.limit)
            .and(number(headers, &self.reset))
            .and_then(|_| number(headers, &self.remaining));
        told.is_some_and(|told| told <= remaining)
    }

    /// Replaces the three.
    pub(super) fn write(&'static self, sheet: &mut Sheet<'_>, limit: Piece, remaining: u64, reset: u64) {
        sheet.text(&self.limit, limit);
        self.write_others(sheet, remaining, reset);
    }

    /// Replaces the three, where the limit never changes.
    pub(super) fn write_constant<'a>(
        &'static self,
        sheet: &mut Sheet<'a>,
        limit: &'a HeaderValue,
        remaining: u64,
        reset: u64,
    ) {
        sheet.constant(&self.limit, limit);
        self.write_others(sheet, remaining, reset);
    }

    fn write_others(&'static self, sheet: &mut Sheet<'_>, remaining: u64, reset: u64) {
        if remaining == 0 {
            sheet.constant(&self.remaining, &NOTHING);
        } else {
            let remaining = sheet.digits(remaining);
            sheet.text(&self.remaining, remaining);
        }
        let reset = sheet.digits(reset);
        sheet.text(&self.reset, reset);
    }
}

/// What refusals nearly always say is left.
static NOTHING: HeaderValue = HeaderValue::from_static("0");

/// The number that a field begins with: alone, or before a list of quotas.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?;
    text.split(',').next()?.trim().parse().ok()
}
