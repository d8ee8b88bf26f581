//! The routes of a policy's requests, numbered in the order of their first requests.
//!
//! The table has open addressing and twice as many slots as routes, so a look-up compares one or two texts. It takes no
//! lock. Texts are patterns from the service's code, never paths that clients send.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use http::Extensions;

use super::MAX_ROUTES;

/// The number of all routes without a number of their own.
pub(super) const OTHER: usize = 0;
/// The number of requests without a matched route.
const NONE: usize = 1;
/// The first number of a route.
const FIRST: usize = 2;
/// One more than the greatest number.
pub(super) const NUMBERS: usize = FIRST + MAX_ROUTES;

const SLOTS: usize = 2 * MAX_ROUTES;

/// A table of routes and their numbers.
pub(super) struct Routes {
    slots: Box<[OnceLock<Route>]>,
    count: AtomicUsize,
}

struct Route {
    number: usize,
    pattern: Box<str>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| OnceLock::new()).collect(), count: AtomicUsize::new(0) }
    }

    /// Returns the number of the route that a request has matched.
    #[inline]
    pub(super) fn number_of(&self, extensions: &Extensions) -> usize {
        #[cfg(feature = "axum")]
        if let Some(matched) = extensions.get::<axum::extract::MatchedPath>() {
            return self.number(matched.as_str());
        }
        let _ = extensions;
        NONE
    }

    /// Returns the number of a pattern; a new one gets the next number.
    fn number(&self, pattern: &str) -> usize {
        let start = hash(pattern);
        for step in 0..SLOTS {
            let slot = &self.slots[start.wrapping_add(step) % SLOTS];
            let Some(route) = slot.get().or_else(|| self.fill(slot, pattern)) else { return OTHER };
            if *route.pattern == *pattern {
                return route.number;
            }
        }
        OTHER
    }

    /// Adds a pattern in a free slot, unless another thread adds one there first.
    #[cold]
    fn fill<'s>(&self, slot: &'s OnceLock<Route>, pattern: &str) -> Option<&'s Route> {
        if self.count.load(Ordering::Relaxed) >= MAX_ROUTES {
            return None;
        }
        // Numbers may run out between the look and the claim. They stay below the maximum in any case.
        Some(slot.get_or_init(|| {
            let claimed = FIRST + self.count.fetch_add(1, Ordering::Relaxed);
            Route { number: if claimed < NUMBERS { claimed } else { OTHER }, pattern: pattern.into() }
        }))
    }

    /// Returns the labels of all numbers that are in use.
    pub(super) fn labels(&self) -> Vec<(usize, String)> {
        let known = self.slots.iter().filter_map(OnceLock::get).filter(|route| route.number != OTHER);
        let known = known.map(|route| (route.number, String::from(&*route.pattern)));
        known.chain([(OTHER, String::from("other")), (NONE, String::from("none"))]).collect()
    }
}

/// Returns a hash of a text, eight bytes at a time. Routes are not chosen by clients, so it needs no secret.
#[inline]
fn hash(text: &str) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = text.len() as u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    mix(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    usize::try_from(hash >> 40).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_keep_their_numbers() {
        let routes = Routes::new();
        let numbers: Vec<usize> = (0..100).map(|at| routes.number(&format!("/users/{at}"))).collect();
        assert_eq!(numbers, (FIRST..FIRST + 100).collect::<Vec<_>>());
        assert_eq!(routes.number("/users/7"), FIRST + 7);
    }

    #[test]
    fn made_up_routes_share_one_number() {
        let routes = Routes::new();
        let numbers: std::collections::HashSet<usize> =
            (0..100_000).map(|at| routes.number(&format!("/{at}"))).collect();
        assert_eq!(numbers.len(), MAX_ROUTES + 1);
        assert_eq!(routes.labels().len(), NUMBERS);
        assert_eq!(routes.number("/99999"), OTHER);
        assert_eq!(routes.number("/0"), FIRST);
    }
}
