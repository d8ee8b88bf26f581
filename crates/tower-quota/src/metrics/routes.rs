//! The routes of a policy's requests, numbered in the order of their first requests.
//!
//! A look-up takes no lock. axum gives every request of a route the same shared text, so the address of the text finds its
//! number: a request reads neither the text nor more than one slot. A text that axum puts together for each request, that of
//! a nested router, is found by its bytes, in a table with open addressing and twice as many slots as routes.
//!
//! The bytes of code on the path of a request matter more here than its instructions: most of them are fetched anew for
//! every request, since the rest of the server fills the processor's cache. So the common look-up is short, and all others
//! are functions of their own.
//!
//! Texts are patterns from the service's code, never paths that clients send.

// Without axum no request has a matched route.
#![cfg_attr(not(feature = "axum"), allow(dead_code))]

#[cfg(feature = "axum")]
use core::sync::atomic::AtomicBool;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

#[cfg(feature = "axum")]
use axum::extract::MatchedPath;
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
    #[cfg(feature = "axum")]
    shared: Box<[OnceLock<SharedText>]>,
}

struct Route {
    number: usize,
    pattern: Box<str>,
    /// True once a text of the route is in the table by address. One is enough: a text that is made for each request would
    /// fill the table.
    #[cfg(feature = "axum")]
    is_shared: AtomicBool,
}

/// A text that requests share, and the number of its route.
///
/// It is kept, so that no other text gets its address.
#[cfg(feature = "axum")]
struct SharedText {
    text: MatchedPath,
    number: usize,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| OnceLock::new()).collect(),
            count: AtomicUsize::new(0),
            #[cfg(feature = "axum")]
            shared: (0..SLOTS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the number of the route that a request has matched.
    #[inline]
    pub(super) fn number_of(&self, extensions: &Extensions) -> usize {
        #[cfg(feature = "axum")]
        if let Some(matched) = extensions.get::<MatchedPath>() {
            let text = matched.as_str().as_ptr();
            return match self.shared[slot_of(text)].get() {
                Some(shared) if shared.text.as_str().as_ptr() == text => shared.number,
                _ => self.number_by_text(matched),
            };
        }
        let _ = extensions;
        NONE
    }

    /// Returns the number of a route whose text is not in its slot, and puts it there if it is free.
    #[cfg(feature = "axum")]
    #[inline(never)]
    fn number_by_text(&self, matched: &MatchedPath) -> usize {
        let Some(route) = self.route(matched.as_str()) else {
            return OTHER;
        };
        let slot = &self.shared[slot_of(matched.as_str().as_ptr())];
        if slot.get().is_none() && !route.is_shared.swap(true, Ordering::Relaxed) {
            slot.get_or_init(|| SharedText {
                text: matched.clone(),
                number: route.number,
            });
        }
        route.number
    }

    /// Returns the number of a pattern; a new one gets the next number.
    #[cfg(test)]
    fn number(&self, pattern: &str) -> usize {
        self.route(pattern).map_or(OTHER, |route| route.number)
    }

    /// Returns the route of a pattern, if it is known or can be added.
    fn route(&self, pattern: &str) -> Option<&Route> {
        let start = hash(pattern);
        for step in 0..SLOTS {
            let slot = &self.slots[start.wrapping_add(step) % SLOTS];
            let route = slot.get().or_else(|| self.fill(slot, pattern))?;
            if *route.pattern == *pattern {
                return Some(route);
            }
        }
        None
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
            Route {
                number: if claimed < NUMBERS { claimed } else { OTHER },
                pattern: pattern.into(),
                #[cfg(feature = "axum")]
                is_shared: AtomicBool::new(false),
            }
        }))
    }

    /// Returns the labels of all numbers that are in use.
    pub(super) fn labels(&self) -> Vec<(usize, String)> {
        let known = self
            .slots
            .iter()
            .filter_map(OnceLock::get)
            .filter(|route| route.number != OTHER);
        let known = known.map(|route| (route.number, String::from(&*route.pattern)));
        known
            .chain([(OTHER, String::from("other")), (NONE, String::from("none"))])
            .collect()
    }
}

/// Returns the slot of a text by its address. Addresses are multiples of sixteen.
#[cfg(feature = "axum")]
#[inline]
fn slot_of(text: *const u8) -> usize {
    let address = text.addr();
    (address >> 4 ^ address >> 14) % SLOTS
}

/// Returns a hash of a text, eight bytes at a time. Routes are not chosen by clients, so it needs no secret.
#[inline]
fn hash(text: &str) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = text.len() as u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    mix(rest
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte)));
    usize::try_from(hash >> 40).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_keep_their_numbers() {
        let routes = Routes::new();
        let numbers: Vec<usize> = (0..100)
            .map(|at| routes.number(&format!("/users/{at}")))
            .collect();
        assert_eq!(numbers, (FIRST..FIRST + 100).collect::<Vec<_>>());
        assert_eq!(routes.number("/users/7"), FIRST + 7);
    }

    #[cfg(feature = "axum")]
    #[test]
    fn routes_of_shared_texts_keep_their_numbers() {
        use http::Request;
        use tower_service::Service;

        let routes = std::sync::Arc::new(Routes::new());
        let noted = std::sync::Arc::clone(&routes);
        let note = move |request: Request<axum::body::Body>| {
            let number = noted.number_of(request.extensions());
            core::future::ready(number.to_string())
        };
        let nested = axum::Router::new().route("/{id}", axum::routing::get(note.clone()));
        let mut app = axum::Router::new().nest("/users", nested);
        for route in 0..100 {
            app = app.route(&format!("/r{route}"), axum::routing::get(note.clone()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut ask = |path: &str| {
            let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
            let response = runtime.block_on(Service::call(&mut app, request)).unwrap();
            let body = runtime
                .block_on(axum::body::to_bytes(response.into_body(), 64))
                .unwrap();
            String::from_utf8(body.to_vec())
                .unwrap()
                .parse::<usize>()
                .unwrap()
        };
        for _ in 0..3 {
            let numbers: Vec<usize> = (0..100).map(|route| ask(&format!("/r{route}"))).collect();
            assert_eq!(numbers, (FIRST..FIRST + 100).collect::<Vec<_>>());
            assert_eq!(
                (ask("/users/1"), ask("/users/2")),
                (FIRST + 100, FIRST + 100)
            );
        }
        assert!(
            routes
                .shared
                .iter()
                .filter(|slot| slot.get().is_some())
                .count()
                > 50
        );
    }

    #[test]
    fn made_up_routes_share_one_number() {
        let routes = Routes::new();
        let numbers: std::collections::HashSet<usize> = (0..100_000)
            .map(|at| routes.number(&format!("/{at}")))
            .collect();
        assert_eq!(numbers.len(), MAX_ROUTES + 1);
        assert_eq!(routes.labels().len(), NUMBERS);
        assert_eq!(routes.number("/99999"), OTHER);
        assert_eq!(routes.number("/0"), FIRST);
    }
}
