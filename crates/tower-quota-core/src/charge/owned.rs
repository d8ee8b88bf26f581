//! A charge that outlives the request.

use core::time::Duration;

use super::{Charge, ChargeMode, ChargeOptions};
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
#[derive(Clone, Debug)]
pub struct OwnedCharge {
    name: Name,
    quota: Quota,
    key: Key<'static>,
    cost: u64,
    penalty: Option<Penalty>,
    max_wait: Option<Duration>,
    turn: Option<Duration>,
    options: ChargeOptions,
    mode: ChargeMode,
}

impl OwnedCharge {
    /// Returns the name of the limit.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Replaces the quota by another quota of the same algorithm, for example an instance's share.
    #[must_use]
    pub const fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Borrows the charge.
    #[must_use]
    pub fn as_charge(&self) -> Charge<'_> {
        let Self {
            name,
            quota,
            key,
            cost,
            penalty,
            max_wait,
            turn,
            options,
            mode,
        } = self;
        Charge {
            name: *name,
            quota,
            key,
            cost: *cost,
            penalty: penalty.as_ref(),
            max_wait: *max_wait,
            turn: *turn,
            options: *options,
            mode: *mode,
        }
    }
}

impl From<&Charge<'_>> for OwnedCharge {
    fn from(charge: &Charge<'_>) -> Self {
        let Charge {
            name,
            quota,
            key,
            cost,
            penalty,
            max_wait,
            turn,
            options,
            mode,
        } = *charge;
        let key = key.to_static();
        Self {
            name,
            quota: *quota,
            key,
            cost,
            penalty: penalty.copied(),
            max_wait,
            turn,
            options,
            mode,
        }
    }
}
