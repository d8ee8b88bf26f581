use http::header::HeaderValue;
use tower_quota_core::Name;

use super::policy_text::policy_of_all;
use crate::limit::{ById, Limit};

#[derive(Debug)]
pub(super) struct Limits {
    list: Vec<Limit>,
    by_id: ById,
    hidden: Vec<Name>,
    pub(super) policy: Option<HeaderValue>,
}

impl Limits {
    pub(super) fn new<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let (mut list, mut hidden) = (Vec::new(), Vec::new());
        for limit in limits {
            if limit.is_hidden() || limit.flags() {
                hidden.push(limit.name);
            } else if !limit.is_shadow() {
                list.push(limit.clone());
            }
        }
        Self {
            hidden,
            by_id: ById::new(list.iter().map(|limit| limit.name)),
            policy: policy_of_all(&list),
            list,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn hides(&self, name: Name) -> bool {
        self.hidden.contains(&name)
    }

    pub(super) fn find(&self, name: Name, position: usize) -> Option<&Limit> {
        self.list
            .get(position)
            .filter(|limit| limit.name.id() == name.id())
            .or_else(|| self.list.get(self.by_id.find(name.id())?))
    }
}
