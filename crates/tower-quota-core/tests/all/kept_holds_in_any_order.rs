//! Takes, renews and releases holds in random order, with failures, losses and crashes between.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::fmt;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tower_quota_core::{Charge, Decision, Hold, Limiter, Operation, Quota, Store};
use tower_quota_testkit::{ManualClock, ModelStore};

const TTL: Duration = Duration::from_secs(12);
const STEP: Duration = Duration::from_millis(250);
const CAPACITY: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    BeforeTheCall,
    AfterTheCall,
}

/// A store that fails before or after a call has taken effect.
#[derive(Clone, Debug)]
struct FaultyStore {
    memory: Arc<Mutex<ModelStore>>,
    clock: ManualClock,
    fault: Arc<Mutex<Fault>>,
}

#[derive(Debug)]
struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

impl Store for FaultyStore {
    type Error = Failed;
    type Future = Ready<Result<Decision, Failed>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let fault = *self.fault.lock().unwrap();
        if fault == Fault::BeforeTheCall {
            return ready(Err(Failed));
        }
        let Ok(decision) = self
            .memory
            .lock()
            .unwrap()
            .apply(operation, charges)
            .into_inner();
        ready(match fault {
            Fault::None => Ok(decision),
            _ => Err(Failed),
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Take,
    Release(usize),
    Pass(u32),
    /// The process stops for this number of seconds.
    Freeze(u32),
    Fail(Fault),
    LoseData,
    Crash,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Take),
        4 => (0..10_usize).prop_map(Action::Release),
        6 => (1..60_u32).prop_map(Action::Pass),
        1 => (1..20_u32).prop_map(Action::Freeze),
        2 => Just(Action::Fail(Fault::BeforeTheCall)),
        2 => Just(Action::Fail(Fault::AfterTheCall)),
        4 => Just(Action::Fail(Fault::None)),
        1 => Just(Action::LoseData),
        1 => Just(Action::Crash),
    ]
}

struct World {
    store: FaultyStore,
    runtime: Runtime,
    limiter: Limiter<FaultyStore>,
    holds: Vec<Hold<FaultyStore>>,
    /// The time since the last disturbance.
    calm: Duration,
    /// The time since a crash or a check with a lost answer, whose units nobody releases.
    certain: Duration,
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::default();
        let store = FaultyStore {
            memory: Arc::new(Mutex::new(ModelStore::with_clock(clock.clone()))),
            clock,
            fault: Arc::new(Mutex::new(Fault::None)),
        };
        Self {
            limiter: Self::limiter(&store),
            store,
            runtime: runtime(),
            holds: Vec::new(),
            calm: TTL * 2,
            certain: TTL * 2,
        }
    }

    fn limiter(store: &FaultyStore) -> Limiter<FaultyStore> {
        Limiter::new(store.clone(), "holds", Quota::concurrent(CAPACITY).ttl(TTL))
    }

    fn fault(&self) -> Fault {
        *self.store.fault.lock().unwrap()
    }

    fn counted(&self) -> u64 {
        let memory = self.store.memory.lock().unwrap().clone();
        let limiter = Limiter::new(memory, "holds", Quota::concurrent(1_000).ttl(TTL));
        let Ok(decision) = limiter.peek(&self.limiter.key_of("ann")).into_inner();
        1_000 - decision.statuses()[0].remaining()
    }

    fn pass(&mut self, time: Duration) {
        self.store.clock.advance(time);
        self.runtime.block_on(async {
            tokio::time::advance(time).await;
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        });
        self.calm += time;
        self.certain += time;
        if self.fault() != Fault::None {
            self.calm = Duration::ZERO;
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Take => {
                let held = self.runtime.block_on(self.limiter.hold("ann"));
                if self.fault() == Fault::AfterTheCall {
                    self.certain = Duration::ZERO;
                }
                if self.is_calm() {
                    let has_room = (self.holds.len() as u64) < CAPACITY;
                    assert_eq!(held.is_ok(), has_room);
                }
                self.holds.extend(held);
                // The next hold has an instant of its own, also after a loss.
                self.pass(Duration::from_micros(1));
            }
            Action::Release(position) => {
                if !self.holds.is_empty() {
                    let position = position % self.holds.len();
                    drop(self.holds.swap_remove(position));
                    self.pass(Duration::ZERO);
                }
            }
            Action::Pass(steps) => (0..steps).for_each(|_| self.pass(STEP)),
            Action::Freeze(seconds) => {
                self.pass(Duration::from_secs(seconds.into()));
                self.calm = Duration::ZERO;
            }
            Action::Fail(fault) => {
                *self.store.fault.lock().unwrap() = fault;
                self.pass(Duration::ZERO);
            }
            Action::LoseData => {
                let empty = ModelStore::with_clock(self.store.clock.clone());
                *self.store.memory.lock().unwrap() = empty;
                // A later hold must not get the instant of a lost one.
                self.pass(Duration::from_millis(1));
                self.calm = Duration::ZERO;
            }
            Action::Crash => {
                self.holds.drain(..).for_each(std::mem::forget);
                self.limiter = Self::limiter(&self.store);
                self.runtime = runtime();
                self.calm = Duration::ZERO;
                self.certain = Duration::ZERO;
            }
        }
    }

    fn is_calm(&self) -> bool {
        self.calm > TTL + Duration::from_secs(1)
    }

    fn check(&self) {
        let in_progress = self.holds.len() as u64;
        if self.is_calm() {
            assert_eq!(self.counted(), in_progress);
        }
        // Failed releases lock nobody out for longer than two attempts.
        if self.calm > Duration::from_secs(1) && self.certain > TTL + Duration::from_secs(1) {
            assert!(self.counted() <= in_progress);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn count_equals_work_in_progress_after_any_trouble(actions in prop::collection::vec(action(), 1..60)) {
        let mut world = World::new();
        for action in actions {
            world.act(action);
            world.check();
        }
        // Within one ttl after the trouble, the store counts what is in progress.
        world.act(Action::Fail(Fault::None));
        world.act(Action::Pass(54));
        prop_assert!(world.is_calm());
        world.check();
        world.holds.clear();
        world.pass(Duration::ZERO);
        prop_assert_eq!(world.counted(), 0);
    }
}
