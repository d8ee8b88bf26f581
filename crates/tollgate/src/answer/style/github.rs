//! The fields of GitHub's API: the `X-RateLimit` three with an epoch reset, what is used, and of which resource.

use http::header::{HeaderMap, HeaderValue};

use super::super::structured::integer;
use super::super::telling::Telling;
use super::names::{X_RESOURCE, X_USED};
use super::{Reset, Style, x};

#[derive(Debug)]
pub(super) struct GitHub;

impl Style for GitHub {
    fn write(&self, telling: Telling<'_>, headers: &mut HeaderMap) {
        let Some(binding) = telling.binding() else { return };
        let reset = Reset::Epoch.of(telling, binding);
        if x::write(headers, integer(binding.limit).into(), binding, reset) {
            headers.insert(X_USED, integer(binding.limit.saturating_sub(binding.remaining)).into());
            headers.insert(X_RESOURCE, HeaderValue::from_static(binding.name.as_str()));
        }
    }

    fn write_local(&self, telling: Telling<'_>, headers: &mut HeaderMap) {
        self.write(telling, headers);
    }

    fn write_uncounted(&self, headers: &mut HeaderMap) {
        x::write_uncounted(headers);
    }
}
