//! The random differential test: a store and the model take the same traces, and must decide the same.
//!
//! 1. [`Differential`] draws traces of requests: all operations, refunds of earlier decisions, parts of a policy,
//!    changed quotas, penalties, pauses that end a microsecond around a promised instant, clocks that go back.
//! 2. Each trace runs on a store of its own with a [`ManualClock`](crate::ManualClock), step by step, and in
//!    [`tower_quota_core::decide`]. Every field of every decision must be equal.
//! 3. A trace on which they differ is shrunk to a small one and printed. Its seed is kept in a file if you name one.
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
//! Customised, for a store that lacks a capability, and whose stored bytes are compared with those of
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
//! * A trace names up to three keys. The store must have room for these and start empty.
//! * The store may forget an entry that is full again. The clock never goes back to where such an entry was not full,
//!   unless [`Differential::forgets_nothing`] says that it may.
//! * Without [`Differential::cases`], `PROPTEST_CASES=20000` in the environment runs longer.

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
    /// Creates a test of 256 traces, or as many as `PROPTEST_CASES` says.
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

    /// Sets the number of traces, whatever `PROPTEST_CASES` says.
    #[must_use]
    pub const fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Leaves out what needs a capability that the store lacks.
    #[must_use]
    pub const fn lacks(mut self, lacks: &'static [Capability]) -> Self {
        self.contents.lacks = lacks;
        self
    }

    /// Draws plain and refundable charges only, mostly of token buckets: stores often decide these in a faster way.
    #[must_use]
    pub const fn plain(mut self) -> Self {
        self.contents.is_plain = true;
        self
    }

    /// Expects that the store keeps entries that are full again.
    ///
    /// For stores in which nothing expires during a trace. The clock then goes back further, also to where an entry is
    /// so far in the future that it counts as missing. Stored bytes must always be equal.
    #[must_use]
    pub const fn forgets_nothing(mut self) -> Self {
        self.forgets_nothing = true;
        self
    }

    /// Sends several requests before the first is awaited. The store must decide them in the order of the calls.
    #[must_use]
    pub const fn bursts(mut self) -> Self {
        self.with_bursts = true;
        self
    }

    /// Keeps the seeds of failed traces in a file, to try them first. Commit that file.
    ///
    /// A relative path starts at the working directory: in `cargo test`, the folder of the package.
    #[must_use]
    pub const fn regressions(mut self, path: &'static str) -> Self {
        self.regressions = Some(path);
        self
    }

    /// Runs a function on each trace. It makes an empty store and returns the result of [`RandomTrace::compare`].
    ///
    /// # Panics
    /// When a trace fails. The message shows the smallest trace found that fails.
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
        // Drawn from the system's randomness: two runs against one server must not meet.
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
