//! Charges that outlive a request.

use core::fmt;

use super::Charge;
use crate::key::Key;
use crate::name::Name;
use crate::penalty::Penalty;
use crate::quota::Quota;

/// A [`Charge`] with its own key and quota, for a later decision or refund.
///
/// ```
/// use tower_quota_core::{Charge, Key, Name, OwnedCharge, Quota};
///
/// let later = {
///     let (minute, token) = (Quota::per_minute(100), String::from("secret"));
///     let key = Key::new(Name::new("token"), token.as_bytes());
///     OwnedCharge::from(&Charge::new("minute", &minute, &key).cost(5))
/// };
/// assert_eq!(later.as_charge().units(), 5);
/// ```
#[derive(Clone)]
#[must_use]
pub struct OwnedCharge {
    quota: Quota,
    key: Key<'static>,
    penalty: Option<Penalty>,
    fields: Charge<'static>,
}

// `as_charge` replaces these placeholders by the real quota and key.
static ANY_QUOTA: Quota = Quota::per_second(1);
static ANY_KEY: Key<'static> = Key::EVERYONE;

impl OwnedCharge {
    /// Returns the name of the limit.
    pub const fn name(&self) -> Name {
        self.fields.name
    }

    /// Replaces the quota by a quota of the same algorithm.
    #[doc(hidden)]
    pub const fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Borrows the charge.
    pub fn as_charge(&self) -> Charge<'_> {
        Charge {
            quota: &self.quota,
            key: &self.key,
            penalty: self.penalty.as_ref(),
            ..self.fields
        }
    }
}

impl From<&Charge<'_>> for OwnedCharge {
    fn from(charge: &Charge<'_>) -> Self {
        Self {
            quota: *charge.quota,
            key: charge.key.to_static(),
            penalty: charge.penalty.copied(),
            fields: Charge {
                quota: &ANY_QUOTA,
                key: &ANY_KEY,
                penalty: None,
                ..*charge
            },
        }
    }
}

impl fmt::Debug for OwnedCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_charge().fmt(f)
    }
}
