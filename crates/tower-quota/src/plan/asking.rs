//! What a policy asks the store about a request.

use core::slice;

use tower_quota_core::{Charge, Key, Name, Quota};

use super::{Applying, Charges, Keys, Overrides, Plan, Planned, Subject, Unasked, other_quotas, quota_of};
use crate::head::RequestHead;
use crate::limit::MissingKey;

impl Plan {
    /// Reads the keys of a request and hands the charges of the limits that apply to `check`, with the quotas that the
    /// request has in place of the limits' own.
    #[inline]
    pub(crate) fn ask<T>(
        &self,
        head: &RequestHead<'_>,
        check: impl FnOnce(&[Charge<'_>], &[(Name, Quota)]) -> T,
    ) -> Result<T, Unasked> {
        let Some(Subject { extractor, shared }) = self.sole.and_then(|sole| self.subjects.get(sole)) else {
            return self.ask_each(head, check);
        };
        let key = extractor.extract(head);
        // Without the key: whether the limit counts the request nevertheless.
        let shares = |planned: &Planned| match planned.limit.without_key() {
            MissingKey::Skip => Ok(false),
            MissingKey::Refuse => Err(Unasked::Missing(planned.limit.extractor.scope())),
            MissingKey::Share => Ok(true),
        };
        let counted = key.as_ref().unwrap_or(shared);
        let (one, several);
        let charges = if let [planned] = &self.limits[..] {
            if key.is_none() && !shares(planned)? {
                return Err(Unasked::NoLimit);
            }
            one = planned.charge(counted, head);
            slice::from_ref(&one)
        } else {
            let mut charges = Charges::new();
            for planned in &self.limits {
                if key.is_some() || shares(planned)? {
                    charges.push(planned.charge(counted, head));
                }
            }
            several = charges;
            &several[..]
        };
        if charges.is_empty() { Err(Unasked::NoLimit) } else { Ok(check(charges, &[])) }
    }

    /// The same where requests have keys of several kinds, or not all of the limits.
    #[inline(never)]
    fn ask_each<T>(
        &self,
        head: &RequestHead<'_>,
        check: impl FnOnce(&[Charge<'_>], &[(Name, Quota)]) -> T,
    ) -> Result<T, Unasked> {
        let (mut keys, mut applying) = (Keys::new(), Applying::new());
        if let Err(scope) = self.read(head, &mut keys, &mut applying) {
            return Err(Unasked::Missing(scope));
        }
        if applying.is_empty() {
            return Err(Unasked::NoLimit);
        }
        let overrides = if self.chooses_quotas { other_quotas(&applying, head) } else { Overrides::new() };
        let mut charges = Charges::new();
        for (planned, place) in &applying {
            let key = self.key(&keys[*place]);
            charges.push(match quota_of(planned, &overrides) {
                Some(quota) => planned.limit.charge(quota, key, head),
                None => planned.charge(key, head),
            });
        }
        Ok(check(&charges, &overrides))
    }
}

impl Planned {
    /// The limit's part in a request, by its own quota.
    #[inline]
    fn charge<'a>(&'a self, key: &'a Key<'a>, head: &RequestHead<'_>) -> Charge<'a> {
        match self.plain_cost {
            Some(units) => Charge::new(self.limit.name, &self.limit.quota, key).cost(units),
            None => self.limit.charge(&self.limit.quota, key, head),
        }
    }
}
