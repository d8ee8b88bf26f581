//! Tries all pairs of what a charge can be, in every order of a few steps, with faults between.
//!
//! 1. You implement [`World`]: two instances of a service, their stores, and their faults.
//! 2. [`Pairs`] makes requests of each two [aspects](Aspect): on one charge, on two limits, on two keys, and in two
//!    instances. It takes every order of up to a number of steps, the shortest first: checks of two clients in two
//!    instances, settlements, refunds, releases, renewals, resets, peeks, changes of the quota, time, and the
//!    [faults](World::FAULTS) of your world. A hold that a renewal does not find is taken again, twice,
//!    because the first answer may be lost.
//! 3. A store that promises to be [exact](Promise::Exact) must agree with the model in every field of every decision.
//!    For other stores, the admitted units must fit into the [bound](Promise::Bounded).
//! 4. At the end the faults and requests end. Nothing may be held. After some time, a touched client must look like an
//!    untouched one.
//! 5. The failure has the fewest steps that break a promise.
//!
//! ```
//! use std::time::Duration;
//! use tower_quota_core::{Clock, Key, MemoryStore, Quota, Timestamp};
//! use tower_quota_testkit::pairs::{Aspect, Effect, Fault, Pairs, Server, World};
//! use tower_quota_testkit::{ManualClock, block_on};
//!
//! /// Two layers on clones of one store.
//! struct InMemory {
//!     clock: ManualClock,
//!     store: MemoryStore,
//! }
//!
//! impl InMemory {
//!     fn new(clock: ManualClock) -> Self {
//!         Self { store: MemoryStore::with_clock(100, clock.clone()), clock }
//!     }
//! }
//!
//! impl World for InMemory {
//!     type Store = MemoryStore;
//!
//!     const FAULTS: &'static [Fault] = &[Fault::Restart(0), Fault::Restart(1)];
//!
//!     async fn open(&mut self, _instance: usize) -> MemoryStore {
//!         self.store.clone()
//!     }
//!
//!     fn now(&self) -> Timestamp {
//!         self.clock.now()
//!     }
//!
//!     async fn pass(&mut self, span: Duration) {
//!         self.clock.advance(span);
//!     }
//!
//!     async fn fault(&mut self, _restart: Fault, _keys: &[Key<'_>]) -> Effect {
//!         *self = Self::new(self.clock.clone());
//!         Effect::Lost(Server::Shared)
//!     }
//! }
//!
//! let mut pairs = Pairs::new(Quota::new(2, Duration::from_secs(10)));
//! pairs.aspects = vec![Aspect::Checked, Aspect::Shadow, Aspect::Refunded];
//! block_on(pairs.run(async || InMemory::new(ManualClock::default()))).unwrap();
//! ```
//!
//! `PAIRS_MORE_STEPS=1` in the environment adds a step to each run.

mod aspect;
mod ledger;
mod promise;
mod run;
mod shape;
mod step;
#[cfg(test)]
mod tests;
mod world;

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use futures_util::future::join_all;
use tower_quota_core::{Key, Name, Quota};

pub use self::aspect::Aspect;
pub use self::promise::Promise;
use self::run::{KEYS, Run};
pub use self::shape::Meeting;
use self::shape::Shape;
use self::step::{Step, advance};
pub use self::world::{Effect, Fault, Server, World};
use crate::conformance::Failure;

const CLIENT: Name = Name::new("client");

/// A test of all pairs of aspects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pairs {
    /// The quota. Choose a small one, because a run has few requests.
    pub quota: Quota,
    /// The quota of calendar windows, which are left out by default.
    pub calendar: Option<Quota>,
    /// The number of requests of each check, by default one more than the quota.
    pub burst: u64,
    /// The time that passes after each request, by default none.
    pub pace: Duration,
    /// The number of steps, by default 3. The first step of each run is a check.
    pub steps: usize,
    /// The aspects, by default all.
    pub aspects: Vec<Aspect>,
    /// The ways in which two aspects meet, by default all.
    pub meetings: Vec<Meeting>,
    /// The promises. By default, all are exact. The last promise of an aspect counts.
    pub promises: Vec<(Aspect, Promise)>,
    /// Other promises of an aspect that meets another aspect in this way.
    pub exceptions: Vec<(Meeting, Aspect, Promise)>,
    /// The errors of requests with two aspects on two keys, by a word of the `Debug` text.
    ///
    /// Such an error must have [`Undecidable`](tower_quota_core::Undecidable) as a source, and charge nothing.
    pub errors: Vec<(Aspect, Aspect, &'static str)>,
    /// The number of runs at the same time, by default 1.
    pub side_by_side: usize,
    is_small_world: bool,
}

impl Pairs {
    /// Creates a test of all pairs.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self {
            quota,
            calendar: None,
            burst: quota.capacity().saturating_add(1),
            pace: Duration::ZERO,
            steps: 3,
            aspects: Aspect::ALL.to_vec(),
            meetings: Meeting::ALL.to_vec(),
            promises: Vec::new(),
            exceptions: Vec::new(),
            errors: Vec::new(),
            side_by_side: 1,
            is_small_world: false,
        }
    }

    /// Tries one request in longer orders, instead of all pairs.
    ///
    /// The request has a limit and a hold. It is settled, refunded, released and renewed, and the quota changes. Each check
    /// is one request.
    #[must_use]
    pub fn small_world(mut self, steps: usize) -> Self {
        self.is_small_world = true;
        self.burst = 1;
        self.steps = steps;
        self
    }

    /// Makes a promise for all aspects.
    pub fn promise_all(&mut self, promise: Promise) {
        self.promises = Aspect::ALL.map(|aspect| (aspect, promise)).to_vec();
    }

    /// Runs the test. Each run gets a world of its own.
    ///
    /// # Errors
    /// Returns the fewest steps that break a promise, and the first steps of each other broken request.
    pub async fn run<W: World>(&self, open: impl AsyncFn() -> W) -> Result<(), Failure> {
        // Draw keys from the system's randomness, because two runs against one server must not share keys.
        let number = Cell::new(RandomState::new().build_hasher().finish());
        let mut shapes = self.shapes();
        let mut broken: Vec<(String, String)> = Vec::new();
        for length in 1..=self.steps + more_steps() {
            let mut sound = Vec::new();
            for shapes in shapes.chunks(self.side_by_side.max(1)) {
                let tried = shapes
                    .iter()
                    .map(|shape| self.tried(shape, length, &number, &open));
                for (shape, failure) in shapes.iter().zip(join_all(tried).await) {
                    match failure {
                        Some(failure) => broken.push(failure),
                        None => sound.push(shape.clone()),
                    }
                }
            }
            shapes = sound;
        }
        let Some((steps, reason)) = broken.first() else {
            return Ok(());
        };
        let mut reason = reason.clone();
        for (steps, other) in &broken[1..] {
            reason += &format!(
                "\nand at \"{steps}\": {}",
                other.lines().next().unwrap_or("")
            );
        }
        Err(Failure::new(steps, reason))
    }

    /// Takes all steps of this length. Returns the first steps that break a promise, and the reason.
    async fn tried<W: World>(
        &self,
        shape: &Shape,
        length: usize,
        number: &Cell<u64>,
        open: &impl AsyncFn() -> W,
    ) -> Option<(String, String)> {
        let letters = shape.steps(W::FAULTS);
        let mut word = vec![0; length];
        loop {
            let steps: Vec<Step> = word.iter().map(|letter| letters[*letter]).collect();
            let first_key = number.get();
            number.set(first_key.wrapping_add(KEYS as u64));
            let keys =
                core::array::from_fn(|key| Key::number(CLIENT, first_key.wrapping_add(key as u64)));
            let mut run = Run::new(self, shape, &keys, open().await).await;
            let position = match run.take(&steps).await {
                Ok(impossible) => impossible.unwrap_or(length - 1),
                Err(reason) => {
                    let Shape {
                        aspects, meeting, ..
                    } = shape;
                    return Some((format!("{aspects:?} {meeting:?}: {steps:?}"), reason));
                }
            };
            if !advance(&mut word, position, letters.len()) {
                return None;
            }
        }
    }

    fn known_aspects(&self) -> impl Iterator<Item = Aspect> {
        let aspects = self.aspects.iter().copied();
        aspects.filter(|aspect| *aspect != Aspect::Calendar || self.calendar.is_some())
    }

    fn shapes(&self) -> Vec<Shape> {
        if self.is_small_world {
            let steps = [Aspect::Settled, Aspect::Refunded, Aspect::ChangedQuota];
            return vec![Shape::new(
                self,
                &steps,
                &[Aspect::Hold],
                Meeting::TwoLimits,
            )];
        }
        let aspects: Vec<Aspect> = self.known_aspects().collect();
        let mut shapes = Vec::new();
        for (position, one) in aspects.iter().enumerate() {
            for other in &aspects[position..] {
                shapes.extend(Shape::of_pair(self, *one, *other));
            }
        }
        shapes
    }

    fn promise_of_shape(&self, shape: &Shape) -> Promise {
        let mut weakest = Promise::Exact;
        for aspect in &shape.aspects {
            let mut exceptions = self.exceptions.iter();
            let exception =
                exceptions.find(|(meeting, other, _)| *meeting == shape.meeting && other == aspect);
            let promise = exception.map_or(self.promise_of(*aspect), |(_, _, promise)| *promise);
            weakest = weakest.weaker(promise);
        }
        weakest
    }

    /// Returns the promise of an aspect, whatever it meets.
    #[must_use]
    pub fn promise_of(&self, aspect: Aspect) -> Promise {
        let mut promises = self.promises.iter().rev();
        let stated = promises.find(|(other, _)| *other == aspect);
        stated.map_or(Promise::Exact, |(_, promise)| *promise)
    }
}

fn more_steps() -> usize {
    let more = std::env::var("PAIRS_MORE_STEPS").ok();
    more.and_then(|more| more.parse().ok()).unwrap_or(0)
}
