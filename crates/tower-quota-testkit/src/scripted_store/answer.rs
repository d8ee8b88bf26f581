//! Defines scripted answers, and the future that delivers them.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Ready, poll_fn};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use tower_quota_core::{Decision, LimitStatus, Operation, Timestamp};

/// An answer of a [`ScriptedStore`](crate::ScriptedStore). The default answer decides in memory, at
/// once.
#[derive(Clone, Debug, Default)]
pub struct ScriptedAnswer {
    content: Content,
    delay: Delay,
}

#[derive(Clone, Debug, Default)]
enum Content {
    #[default]
    Memory,
    Statuses(Vec<LimitStatus>),
    Error(ScriptedError),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delay {
    #[default]
    None,
    OnePoll,
    UntilReleased,
}

/// The error of a scripted failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedError(Arc<str>);

impl ScriptedAnswer {
    /// Creates an answer that decides in memory. The store takes the charges at once, before any delay.
    #[must_use]
    pub fn memory() -> Self {
        Self::default()
    }

    /// Creates an answer with these statuses, even if no quota leads to them. The store takes no
    /// charge.
    #[must_use]
    pub fn statuses(statuses: impl IntoIterator<Item = LimitStatus>) -> Self {
        Self {
            content: Content::Statuses(statuses.into_iter().collect()),
            delay: Delay::None,
        }
    }

    /// Creates a failure with this message. The store takes no charge.
    #[must_use]
    pub fn error(message: impl Into<Arc<str>>) -> Self {
        Self {
            content: Content::Error(ScriptedError(message.into())),
            delay: Delay::None,
        }
    }

    /// Delays the answer until the test calls [`release`](crate::ScriptedStore::release).
    ///
    /// ```
    /// use tower_quota_core::{Charge, Key, Quota, Store};
    /// use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, block_on};
    ///
    /// let store = ScriptedStore::new();
    /// store.push(ScriptedAnswer::memory().held());
    /// let quota = Quota::per_minute(1);
    /// let decision = store.check(&[Charge::new("minute", &quota, &Key::EVERYONE)]);
    /// assert_eq!(store.held(), 1);
    /// store.release();
    /// assert!(block_on(decision).unwrap().is_allowed());
    /// ```
    #[must_use]
    pub fn held(self) -> Self {
        Self {
            delay: Delay::UntilReleased,
            ..self
        }
    }

    /// Makes the answer ready at the second poll. The first poll wakes the task at once.
    #[must_use]
    pub fn yielding(self) -> Self {
        Self {
            delay: Delay::OnePoll,
            ..self
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.delay == Delay::UntilReleased
    }

    pub(super) fn result(
        &self,
        operation: Operation,
        now: Timestamp,
        decide: impl FnOnce() -> Ready<Result<Decision, Infallible>>,
    ) -> Result<Decision, ScriptedError> {
        match &self.content {
            Content::Memory => {
                let Ok(decision) = decide().into_inner();
                Ok(decision)
            }
            Content::Statuses(statuses) => {
                let statuses = statuses.iter().copied();
                Ok(Decision::from_statuses(operation, now, statuses))
            }
            Content::Error(error) => Err(error.clone()),
        }
    }

    pub(super) async fn wait(&self, hold: Option<Arc<Hold>>) {
        let mut yields = self.delay == Delay::OnePoll;
        poll_fn(|context| {
            let waker = context.waker();
            if mem::take(&mut yields) {
                waker.wake_by_ref();
                return Poll::Pending;
            }
            match &hold {
                Some(hold) if hold.waits(waker) => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl fmt::Display for ScriptedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ScriptedError {}

/// Holds an answer back until its release.
#[derive(Debug, Default)]
pub(super) struct Hold(Mutex<HoldState>);

#[derive(Debug, Default)]
struct HoldState {
    is_released: bool,
    waker: Option<Waker>,
}

impl Hold {
    pub(super) fn release(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_released = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Registers the task to wake. Returns whether the task has to wait.
    fn waits(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_released {
            state.waker = Some(waker.clone());
        }
        !state.is_released
    }
}
