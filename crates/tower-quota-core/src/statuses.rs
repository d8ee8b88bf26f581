//! The statuses of a decision.

use core::fmt;
use core::ops::Deref;

use crate::status::LimitStatus;

/// The statuses of a decision, up to three of them without an allocation.
///
/// A known number of statuses is written in place. A vector would have to check its length first.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Statuses {
    None,
    One([LimitStatus; 1]),
    Two([LimitStatus; 2]),
    Three([LimitStatus; 3]),
    Any(Vec<LimitStatus>),
}

impl Statuses {
    /// Makes this many statuses, each from its position.
    #[inline]
    pub(crate) fn from_fn(count: usize, status: impl Fn(usize) -> LimitStatus) -> Self {
        match count {
            1 => Self::One([status(0)]),
            2 => Self::Two([status(0), status(1)]),
            3 => Self::Three([status(0), status(1), status(2)]),
            4 => Self::Any(vec![status(0), status(1), status(2), status(3)]),
            _ => (0..count).map(status).collect(),
        }
    }

    /// Replaces the statuses in place: to move all three places takes longer than to write one of them.
    pub(crate) fn replace(&mut self, mut statuses: impl Iterator<Item = LimitStatus>) {
        let Some(one) = statuses.next() else {
            return *self = Self::None;
        };
        let Some(two) = statuses.next() else {
            return *self = Self::One([one]);
        };
        let Some(three) = statuses.next() else {
            return *self = Self::Two([one, two]);
        };
        *self = match statuses.next() {
            None => Self::Three([one, two, three]),
            Some(four) => Self::Any(
                [one, two, three, four]
                    .into_iter()
                    .chain(statuses)
                    .collect(),
            ),
        };
    }
}

impl Deref for Statuses {
    type Target = [LimitStatus];

    #[inline]
    fn deref(&self) -> &[LimitStatus] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Two(two) => two,
            Self::Three(three) => three,
            Self::Any(any) => any,
        }
    }
}

impl fmt::Debug for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl FromIterator<LimitStatus> for Statuses {
    fn from_iter<I: IntoIterator<Item = LimitStatus>>(statuses: I) -> Self {
        let mut all = Self::None;
        all.replace(statuses.into_iter());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;
    use crate::outcome::Outcome;
    use crate::quota::Quota;
    use crate::status::Left;

    #[test]
    fn statuses_keep_their_order() {
        let quota = Quota::per_second(1_000);
        let status = |used| LimitStatus {
            name: Name::new("limit"),
            limit: quota.capacity(),
            left: Left::of_bucket(&quota, used * quota.grain()),
            taken: 1,
            outcome: Outcome::Allow,
            is_shadow: false,
        };
        let all = [status(1), status(2), status(3), status(4), status(5)];
        for count in 0..=5 {
            let statuses: Statuses = all[..count].iter().copied().collect();
            assert_eq!(*statuses, all[..count]);
        }
        for count in 0..=5 {
            assert_eq!(
                *Statuses::from_fn(count, |position| all[position]),
                all[..count]
            );
        }
        assert!(Statuses::None.is_empty());
    }
}
