//! Runs the same random traces on your store and on the model, and compares the decisions.
//!
//! 1. [`Differential`] draws traces of requests. A trace has all operations, refunds of earlier
//!    decisions, parts of a policy, changed quotas, penalties, pauses that end a microsecond around
//!    a promised instant, and clocks that go back.
//! 2. Each trace runs on a store of its own with a [`ManualClock`](crate::ManualClock), step by step, and in
//!    [`tower_quota_core::decide`]. Every field of every decision must be equal.
//! 3. If the decisions differ, the test shrinks the trace and prints the small one. The test keeps
//!    the seed in a file if you name a file.
//!
//! ```
//! use tower_quota_core::MemoryStore;
//! use tower_quota_testkit::block_on;
//! use tower_quota_testkit::differential::Differential;
//!
//! Differential::new().run(|trace| {
//!     let store = MemoryStore::with_clock(1_000, trace.clock());
//!     block_on(trace.compare(&store))
//! });
//! ```
//!
//! Customised for a store that lacks a capability, with a comparison of the stored bytes with
//! [`Entry::encode`](tower_quota_core::Entry::encode):
//!
//! ```no_run
//! # use tower_quota_core::{Key, MemoryStore};
//! # use tower_quota_testkit::ManualClock;
//! use tower_quota_testkit::block_on;
//! use tower_quota_testkit::conformance::Capability;
//! use tower_quota_testkit::differential::Differential;
//!
//! # fn open(_prefix: &str, clock: ManualClock) -> MemoryStore { MemoryStore::with_clock(9, clock) }
//! # async fn load(_: &MemoryStore, _: &Key<'_>) -> Vec<u8> { Vec::new() }
//! let differential = Differential::new()
//!     .cases(1_000)
//!     .lacks(&[Capability::Penalties])
//!     .regressions("tests/regressions.txt");
//! differential.run(|trace| {
//!     let store = open(trace.prefix(), trace.clock());
//!     block_on(trace.compare_bytes(&store, async |key: &Key<'_>| load(&store, key).await))
//! });
//! ```
//!
//! # Caveats
//!
//! * A trace has up to three keys. Your store must have room for three keys, and start empty.
//! * Your store may forget an entry that is full again. The clock then never goes back to an
//!   instant at which the entry was not full, unless you call [`Differential::forgets_nothing`].
//! * Set `PROPTEST_CASES=20000` in the environment to run longer, unless you call
//!   [`Differential::cases`].

mod plan;
mod strategy;
#[cfg(test)]
mod tests;
mod trace;

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};

use self::strategy::Contents;
pub use self::trace::RandomTrace;
use crate::conformance::{Capability, Failure};

/// A random differential test of a store.
#[derive(Clone, Copy, Debug)]
pub struct Differential {
    cases: u32,
    contents: Contents,
    with_bursts: bool,
    forgets_nothing: bool,
    regressions: Option<&'static str>,
}

impl Differential {
    /// Creates a test of 256 traces, or of the number in `PROPTEST_CASES`.
    #[must_use]
    pub fn new() -> Self {
        let contents = Contents {
            lacks: &[],
            is_plain: false,
        };
        let cases = Config::default().cases;
        Self {
            cases,
            contents,
            with_bursts: false,
            forgets_nothing: false,
            regressions: None,
        }
    }

    /// Sets the number of traces, instead of `PROPTEST_CASES`.
    #[must_use]
    pub const fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Leaves out steps that need a missing capability.
    #[must_use]
    pub const fn lacks(mut self, lacks: &'static [Capability]) -> Self {
        self.contents.lacks = lacks;
        self
    }

    /// Draws plain and refundable charges only, mostly of token buckets. Stores often have a fast
    /// path for them.
    #[must_use]
    pub const fn plain(mut self) -> Self {
        self.contents.is_plain = true;
        self
    }

    /// Expects that the store keeps entries that are full again.
    ///
    /// Call this method if entries never expire in your store during a trace. The clock then goes
    /// back further, even to an instant at which an entry is so far in the future that it counts as
    /// missing. Stored bytes must always be equal.
    #[must_use]
    pub const fn forgets_nothing(mut self) -> Self {
        self.forgets_nothing = true;
        self
    }

    /// Sends several requests before awaiting the first. Your store must decide them in the order
    /// of the calls.
    #[must_use]
    pub const fn bursts(mut self) -> Self {
        self.with_bursts = true;
        self
    }

    /// Keeps the seeds of failed traces in a file, and tries these seeds first. Commit the file.
    ///
    /// A relative path starts at the working directory, which is the folder of the package in
    /// `cargo test`.
    #[must_use]
    pub const fn regressions(mut self, path: &'static str) -> Self {
        self.regressions = Some(path);
        self
    }

    /// Runs your function on each trace. The function makes an empty store, and returns the result
    /// of [`RandomTrace::compare`].
    ///
    /// # Panics
    /// Panics when a trace fails. The message shows the smallest trace found that fails.
    #[expect(clippy::panic, reason = "documented: it is a test")]
    pub fn run(&self, test: impl Fn(&RandomTrace<'_>) -> Result<(), Failure>) {
        let persistence = self
            .regressions
            .map(|path| Box::new(FileFailurePersistence::Direct(path)) as Box<_>);
        let mut runner = TestRunner::new(Config {
            cases: self.cases,
            failure_persistence: persistence,
            ..Config::default()
        });
        // Draw a prefix from the system's randomness, because two runs against one server must not
        // share keys.
        let run = RandomState::new().build_hasher().finish();
        let traces = Cell::new(0_u64);
        let result = runner.run(&self.contents.plan(), |plan| {
            traces.set(traces.get() + 1);
            let prefix = format!("differential-{run:016x}-{}", traces.get());
            test(&RandomTrace::new(&plan, prefix, *self))
                .map_err(|failure| TestCaseError::fail(failure.to_string()))
        });
        if let Err(error) = result {
            panic!("{error}");
        }
    }
}

impl Default for Differential {
    fn default() -> Self {
        Self::new()
    }
}
