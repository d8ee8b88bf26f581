//! Makes a store that answers by a script, and records the operations.

mod answer;

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tower_quota_core::{Charge, Clock, Decision, Key, Name, Operation, Store};

use self::answer::Hold;
pub use self::answer::{ScriptedAnswer, ScriptedError};
use crate::{ManualClock, ModelStore};

/// A test double of a store, which answers by your script and records the operations.
///
/// Each operation takes the next answer of the script. After the script, operations take the
/// default answer, which decides in memory on a [`ManualClock`]. Clones share the script and the
/// records.
///
/// ```
/// use tower_quota_core::{Charge, Key, Operation, Quota, Store};
/// use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, block_on};
///
/// let store = ScriptedStore::new();
/// store.push(ScriptedAnswer::error("connection refused"));
///
/// let (quota, everyone) = (Quota::per_minute(10), Key::EVERYONE);
/// let charge = Charge::new("minute", &quota, &everyone).cost(3);
/// assert_eq!(block_on(store.check(&[charge])).unwrap_err().to_string(), "connection refused");
/// assert_eq!(block_on(store.check(&[charge])).unwrap().statuses()[0].remaining(), 7);
///
/// let operations = store.operations();
/// assert_eq!(operations.len(), 2);
/// assert_eq!(operations[0].operation, Operation::Check);
/// assert_eq!((operations[0].charges[0].name.as_str(), operations[0].charges[0].units), ("minute", 3));
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedStore {
    memory: ModelStore,
    clock: ManualClock,
    state: Arc<Mutex<ScriptState>>,
}

/// An operation that a [`ScriptedStore`] has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedOperation {
    /// The operation.
    pub operation: Operation,
    /// The charges, in order.
    pub charges: Vec<RecordedCharge>,
}

/// A charge that a [`ScriptedStore`] has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedCharge {
    /// The name of the limit.
    pub name: Name,
    /// The key.
    pub key: Key<'static>,
    /// The cost, in units.
    pub units: u64,
}

#[derive(Debug, Default)]
struct ScriptState {
    script: VecDeque<ScriptedAnswer>,
    default: ScriptedAnswer,
    operations: Vec<RecordedOperation>,
    held: Vec<Arc<Hold>>,
}

impl ScriptedStore {
    /// Creates a store with an empty script, on a [`ManualClock`] of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(ManualClock::default())
    }

    /// Creates a store with an empty script, on this clock.
    #[must_use]
    pub fn with_clock(clock: ManualClock) -> Self {
        Self {
            memory: ModelStore::with_clock(clock.clone()),
            clock,
            state: Arc::default(),
        }
    }

    /// Appends an answer to the script.
    pub fn push(&self, answer: ScriptedAnswer) {
        self.lock().script.push_back(answer);
    }

    /// Sets the answer to all operations after the script.
    pub fn set_default(&self, answer: ScriptedAnswer) {
        self.lock().default = answer;
    }

    /// Releases the answers that are held now. The store holds later answers again.
    pub fn release(&self) {
        // Unlock before waking, because wakers may call the store.
        let held = mem::take(&mut self.lock().held);
        held.iter().for_each(|hold| hold.release());
    }

    /// Returns the number of operations that wait for [`release`](Self::release). Dropped futures
    /// do not count.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lock()
            .held
            .iter()
            .filter(|hold| Arc::strong_count(hold) > 1)
            .count()
    }

    /// Returns the operations so far, in order.
    #[must_use]
    pub fn operations(&self) -> Vec<RecordedOperation> {
        self.lock().operations.clone()
    }

    /// Returns the store in memory behind this store. The script and the records ignore operations
    /// on the store in memory.
    #[must_use]
    pub fn memory(&self) -> &ModelStore {
        &self.memory
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ScriptedStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for ScriptedStore {
    type Error = ScriptedError;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, ScriptedError>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let mut state = self.lock();
        let charged = charges.iter().map(RecordedCharge::of).collect();
        state.operations.push(RecordedOperation {
            operation,
            charges: charged,
        });
        let answer = state
            .script
            .pop_front()
            .unwrap_or_else(|| state.default.clone());
        let hold = answer.is_held().then(Arc::<Hold>::default);
        state.held.extend(hold.clone());
        // Call the memory store under the lock, so that its operations are in the recorded order.
        let result = answer.result(operation, self.clock.now(), || {
            self.memory.apply(operation, charges)
        });
        Box::pin(async move {
            answer.wait(hold).await;
            result
        })
    }

    /// Returns `false`, because a cache would remember refusals by another clock than the test's.
    fn is_shared(&self) -> bool {
        false
    }
}

impl RecordedCharge {
    fn of(charge: &Charge<'_>) -> Self {
        let key = charge.key();
        Self {
            name: charge.name(),
            key: key.to_static(),
            units: charge.units(),
        }
    }
}
