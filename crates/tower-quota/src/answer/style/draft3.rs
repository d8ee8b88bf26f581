//! Draft 3 with an `X-` before each name, as Envoy's `DRAFT_VERSION_03` writes it: the limit that binds, followed by all
//! quotas.

use http::header::HeaderMap;

use super::super::seconds::whole_seconds;
use super::super::sheet::Sheet;
use super::super::structured::{push_integer, push_string};
use super::super::telling::Telling;
use super::policies::{Dialect, Entry, Policies};
use super::{Reset, Style, x};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct Draft3 {
    policies: Policies,
}

impl Draft3 {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { policies: Policies::new(limits, Dialect { member: push_policy, tells: |_, _| true }) }
    }
}

impl Style for Draft3 {
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        let Some(binding) = telling.binding() else { return };
        let begin = sheet.here();
        sheet.integer(binding.limit);
        if let Some(policies) = self.policies.of(telling) {
            sheet.out().extend(b", ");
            sheet.out().extend(policies.as_bytes());
        }
        let limit = sheet.since(begin);
        x::write(telling, headers, sheet, limit, binding, Reset::Delta.of(telling, binding));
    }

    /// Without the quotas, which an instance by itself does not hold to.
    fn write_local<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        if let Some(binding) = telling.binding() {
            let limit = sheet.digits(binding.limit);
            x::write(telling, headers, sheet, limit, binding, Reset::Delta.of(telling, binding));
        }
    }

    fn write_uncounted(&self, headers: &mut HeaderMap) {
        x::write_uncounted(headers);
    }
}

/// `20;w=2;name="burst"`
fn push_policy(out: &mut Vec<u8>, entry: &Entry<'_>) {
    push_integer(out, entry.quota.capacity());
    out.extend_from_slice(b";w=");
    push_integer(out, whole_seconds(entry.quota.horizon()).max(1));
    out.extend_from_slice(b";name=");
    push_string(out, entry.name.as_str());
}
