//! The standings of a decision.

use core::fmt;
use core::ops::Deref;

use crate::standing::Standing;

/// Standings, up to three of them kept without an allocation. Of a number that is known they are written where they stay,
/// without a look at what is there already.
#[derive(Clone)]
pub(crate) enum Standings {
    None,
    One([Standing; 1]),
    Two([Standing; 2]),
    Three([Standing; 3]),
    Any(Vec<Standing>),
}

impl Standings {
    #[inline]
    pub(crate) fn of<const N: usize>(standings: [Standing; N]) -> Self {
        match standings.as_slice() {
            [one] => Self::One([*one]),
            [one, two] => Self::Two([*one, *two]),
            [one, two, three] => Self::Three([*one, *two, *three]),
            any => Self::Any(any.to_vec()),
        }
    }
}

impl Deref for Standings {
    type Target = [Standing];

    #[inline]
    fn deref(&self) -> &[Standing] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Two(two) => two,
            Self::Three(three) => three,
            Self::Any(any) => any,
        }
    }
}

impl PartialEq for Standings {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Standings {}

impl fmt::Debug for Standings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl FromIterator<Standing> for Standings {
    fn from_iter<I: IntoIterator<Item = Standing>>(standings: I) -> Self {
        let mut standings = standings.into_iter();
        let mut first = [(); 3].map(|()| standings.next());
        match (first, standings.next()) {
            ([Some(one), None, _], _) => Self::One([one]),
            ([Some(one), Some(two), None], _) => Self::Two([one, two]),
            ([Some(one), Some(two), Some(three)], None) => Self::Three([one, two, three]),
            (_, fourth) => {
                Self::Any(first.iter_mut().filter_map(Option::take).chain(fourth).chain(standings).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Outcome;
    use crate::name::Name;
    use crate::quota::Quota;
    use crate::standing::Left;

    #[test]
    fn they_are_those_that_were_put_in_in_their_order() {
        let quota = Quota::per_second(1_000);
        let standing = |used| Standing {
            name: Name::new("limit"),
            limit: quota.capacity(),
            left: Left::of_bucket(&quota, used * quota.grain()),
            taken: 1,
            outcome: Outcome::Allow,
            is_shadow: false,
        };
        let all = [standing(1), standing(2), standing(3), standing(4), standing(5)];
        for count in 0..=5 {
            let standings: Standings = all[..count].iter().copied().collect();
            assert_eq!(*standings, all[..count]);
        }
        assert_eq!(*Standings::of([all[0]]), all[..1]);
        assert_eq!(*Standings::of([all[0], all[1]]), all[..2]);
        assert_eq!(*Standings::of([all[0], all[1], all[2]]), all[..3]);
        assert_eq!(*Standings::of(all), all);
        assert!(Standings::None.is_empty());
    }
}
