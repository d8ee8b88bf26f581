//! The limits of a policy, as clients see them.

use http::header::HeaderValue;
use tower_quota_core::{Name, Quota};

use super::text::{FieldText, number_value, push_string};
use crate::limit::{ById, Limit};

/// A limit of a policy, as clients see it.
#[derive(Clone, Debug)]
pub struct LimitInfo {
    name: Name,
    quota: Quota,
    unit: Option<Name>,
    /// The name as a String of structured fields.
    quoted_name: FieldText,
    /// The capacity of the limit's own quota, as the value of a field.
    capacity: Option<HeaderValue>,
}

impl LimitInfo {
    fn new(limit: &Limit) -> Self {
        let mut quoted_name = FieldText::new();
        push_string(&mut quoted_name, limit.name.as_str());
        let capacity = number_value(limit.quota.capacity());
        Self {
            name: limit.name,
            quota: limit.quota,
            unit: limit.unit,
            quoted_name,
            capacity,
        }
    }

    /// Returns the limit's name.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the limit's own quota. A request may have [another](crate::LimitReport::quota).
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns the unit that the limit counts, if not requests: see [`Limit::unit`](crate::Limit::unit).
    #[must_use]
    pub const fn unit(&self) -> Option<Name> {
        self.unit
    }

    /// Returns the capacity of the limit's own quota, as the value of a field.
    pub(super) fn capacity_value(&self) -> Option<HeaderValue> {
        self.capacity.clone()
    }

    pub(super) fn quoted_name(&self) -> &[u8] {
        &self.quoted_name
    }
}

/// The limits of a policy that are no shadows, found by name.
#[derive(Debug)]
pub(super) struct LimitInfos {
    list: Vec<LimitInfo>,
    by_id: ById,
}

impl LimitInfos {
    pub(super) fn new<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let list: Vec<LimitInfo> = limits
            .into_iter()
            .filter(|limit| !limit.is_shadow())
            .map(LimitInfo::new)
            .collect();
        let by_id = ById::new(list.iter().map(|info| info.name));
        Self { list, by_id }
    }

    /// Returns the limits in the order of the policy.
    pub(super) fn list(&self) -> &[LimitInfo] {
        &self.list
    }

    /// Returns a limit, which is nearly always at this position.
    pub(super) fn find(&self, name: Name, position: usize) -> Option<&LimitInfo> {
        // Within a policy each limit has its own number.
        let is_it = |info: &&LimitInfo| info.name.id() == name.id();
        self.list
            .get(position)
            .filter(is_it)
            .or_else(|| self.list.get(self.by_id.find(name.id())?))
    }
}
