//! Lists of the quotas that a request is held to.

use http::HeaderValue;
use smallvec::SmallVec;
use tower_quota_core::{Name, Quota};

use super::super::partition::PartitionKey;
use super::super::telling::Telling;
use crate::limit::Limit;

/// A limit as a list of quotas tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: Name,
    pub(super) quota: &'a Quota,
    pub(super) partition: Option<&'a PartitionKey>,
    /// The member, where it is what it always is.
    text: Option<&'a [u8]>,
}

/// A style's own way to write such a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    /// Writes one member.
    pub(super) member: fn(&mut Vec<u8>, &Entry<'_>),
    /// Whether the entry at this position is told beside the others.
    pub(super) tells: fn(&[Entry<'_>], usize) -> bool,
}

/// The quotas of a policy, as a list. Each member, and the list when every limit applies, is always the same, and rendered
/// once; but for quotas that requests choose, and partitions.
#[derive(Debug)]
pub(super) struct Policies {
    limits: Vec<(Name, Quota, Vec<u8>)>,
    whole: Option<HeaderValue>,
    dialect: Dialect,
}

impl Policies {
    pub(super) fn new(limits: &[Limit], dialect: Dialect) -> Self {
        let limits: Vec<(Name, Quota, Vec<u8>)> = limits
            .iter()
            .map(|limit| {
                let mut text = Vec::new();
                let entry = Entry { name: limit.name, quota: &limit.quota, partition: None, text: None };
                (dialect.member)(&mut text, &entry);
                (limit.name, limit.quota, text)
            })
            .collect();
        let entries: Vec<Entry<'_>> = limits
            .iter()
            .map(|(name, quota, text)| Entry { name: *name, quota, partition: None, text: Some(text) })
            .collect();
        let whole = dialect.list(&entries);
        Self { limits, whole, dialect }
    }

    /// The list of all limits.
    pub(super) const fn always(&self) -> Option<&HeaderValue> {
        self.whole.as_ref()
    }

    /// The list of all limits, where a request is told of all of them as always.
    pub(super) fn whole(&self, telling: Telling<'_>) -> Option<&HeaderValue> {
        let is_whole = telling.particulars.leave_policies_alone() && telling.statuses().count() == self.limits.len();
        if is_whole { self.whole.as_ref() } else { None }
    }

    /// The list of the limits that a request is told of; `None` when there are none.
    pub(super) fn of(&self, telling: Telling<'_>) -> Option<HeaderValue> {
        if let Some(whole) = self.whole(telling) {
            return Some(whole.clone());
        }
        let as_always = telling.particulars.leave_policies_alone();
        let entries: SmallVec<[Entry<'_>; 4]> = telling
            .statuses()
            .filter_map(|standing| {
                let (name, own, text) = self.limits.iter().find(|(name, ..)| *name == standing.name)?;
                Some(Entry {
                    name: *name,
                    quota: telling.quota(standing, own),
                    partition: telling.partition(standing),
                    text: as_always.then_some(text),
                })
            })
            .collect();
        self.dialect.list(&entries)
    }
}

impl Dialect {
    fn list(self, entries: &[Entry<'_>]) -> Option<HeaderValue> {
        let mut out = Vec::with_capacity(96);
        for (i, entry) in entries.iter().enumerate() {
            if !(self.tells)(entries, i) {
                continue;
            }
            separate(&mut out);
            match entry.text {
                Some(text) => out.extend_from_slice(text),
                None => (self.member)(&mut out, entry),
            }
        }
        value(out)
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
