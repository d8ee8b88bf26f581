//! Lists of the quotas that a request is held to.

use http::HeaderValue;
use smallvec::SmallVec;
use tollgate_core::{Name, Quota};

use super::super::partition::PartitionKey;
use super::super::telling::Telling;
use crate::limit::Limit;

/// A limit as a list of quotas tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: Name,
    pub(super) quota: &'a Quota,
    pub(super) partition: Option<&'a PartitionKey>,
}

/// Writes the members of such a list, in a style's own way.
type Render = fn(&[Entry<'_>]) -> Vec<u8>;

/// The quotas of a policy, as a list. When every limit applies it is always the same, and rendered once.
#[derive(Debug)]
pub(super) struct Policies {
    limits: Vec<(Name, Quota)>,
    whole: Option<HeaderValue>,
    render: Render,
}

impl Policies {
    pub(super) fn new(limits: &[Limit], render: Render) -> Self {
        let limits: Vec<(Name, Quota)> = limits.iter().map(|limit| (limit.name, limit.quota)).collect();
        let entries: Vec<Entry<'_>> =
            limits.iter().map(|(name, quota)| Entry { name: *name, quota, partition: None }).collect();
        let whole = value(render(&entries));
        Self { limits, whole, render }
    }

    /// The list of the limits that a request is told of; `None` when there are none.
    pub(super) fn of(&self, telling: Telling<'_>) -> Option<HeaderValue> {
        if telling.particulars.leave_policies_alone() && telling.standings().count() == self.limits.len() {
            return self.whole.clone();
        }
        let entries: SmallVec<[Entry<'_>; 4]> = telling
            .standings()
            .filter_map(|standing| {
                let (name, own) = self.limits.iter().find(|(name, _)| *name == standing.name)?;
                let partition = telling.partition(standing);
                Some(Entry { name: *name, quota: telling.quota(standing, own), partition })
            })
            .collect();
        value((self.render)(&entries))
    }
}

/// A field's value, if there is anything to say.
pub(super) fn value(text: Vec<u8>) -> Option<HeaderValue> {
    // Numbers, base64 and the checked names of limits always make a value.
    if text.is_empty() { None } else { HeaderValue::try_from(text).ok() }
}

/// Begins the next member of a list.
pub(super) fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.extend_from_slice(b", ");
    }
}
