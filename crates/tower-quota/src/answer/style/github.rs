//! The fields of GitHub's API: the `X-RateLimit` three with an epoch reset, what is used, and of which resource.

use http::header::HeaderMap;

use super::super::sheet::Sheet;
use super::super::telling::Telling;
use super::names::{X_RESOURCE, X_USED};
use super::{Reset, Style, x};

#[derive(Debug)]
pub(super) struct GitHub;

impl Style for GitHub {
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        let Some(binding) = telling.binding() else { return };
        let reset = Reset::Epoch.of(telling, binding);
        let limit = sheet.digits(binding.limit);
        if x::write(telling, headers, sheet, limit, binding, reset) {
            let used = sheet.digits(binding.limit.saturating_sub(binding.remaining()));
            sheet.text(&X_USED, used);
            let begin = sheet.here();
            sheet.out().extend(binding.name.as_str().as_bytes());
            let resource = sheet.since(begin);
            sheet.text(&X_RESOURCE, resource);
        }
    }

    fn write_local<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        self.write(telling, headers, sheet);
    }

    fn write_uncounted(&self, headers: &mut HeaderMap) {
        x::write_uncounted(headers);
    }
}
