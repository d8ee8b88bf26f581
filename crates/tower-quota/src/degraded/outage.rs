use core::error::Error;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::Timestamp;

use super::OnStoreFailure;
use super::recent::{Recent, RecentOutage};
use crate::observe::{Event, Observer, StoreFailure, StoreFailureKind};
use crate::request::Rules;

const REPEAT: Duration = Duration::from_secs(60);
/// The longest time between two looks at the error's text. A failing store and an open breaker
/// give different texts. The first looks follow sooner, because the first error of an outage is
/// often not the cause.
const LOOK: Duration = Duration::from_secs(1);
/// The maximum number of logged texts per minute. Texts with port numbers, for example, never
/// repeat.
const MOST_TEXTS: usize = 8;
/// The time without failures before the log reports a recovery, because an overloaded store fails
/// only some calls.
const CALM: Duration = Duration::from_secs(5);
const ATTEMPTS: &str = "attempts to settle, renew or release units";

/// Logs a warning at the first failure of the store, a warning per minute with counts, and the recovery.
///
/// Lost holds have a warning per minute.
#[derive(Default)]
pub(crate) struct OutageLog {
    is_failing: AtomicBool,
    outage: Mutex<Option<Outage>>,
    lost_holds: Mutex<Option<Timestamp>>,
    recent: Mutex<Recent>,
}

/// What a failed call was for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailedCall {
    Decision { is_uncounted: bool },
    Settlement,
}

struct Outage {
    began: Timestamp,
    last_failure: Timestamp,
    last_look: Timestamp,
    last_warning: Timestamp,
    /// The logged texts since the last repetition, because the nodes of a store fail differently.
    texts: Vec<String>,
    failed: u64,
    uncounted: u64,
    /// Failed attempts to settle, renew or release units. A repeated call counts again.
    unsettled: u64,
}

impl OutageLog {
    fn failed(&self, error: &(dyn Error + 'static), call: FailedCall, now: Timestamp) {
        // A subscriber may be slow, so logging holds no lock.
        if let Some(warning) = self.warning(error, call, now) {
            tracing::warn!(target: "tower_quota", "{warning}");
        }
    }

    pub(crate) fn recent(&self, now: Timestamp) -> Option<RecentOutage> {
        self.lock_recent().report(now)
    }

    fn lock_recent(&self) -> MutexGuard<'_, Recent> {
        // The counts are independent, so they are valid even if a thread panicked.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost_hold(&self, error: &(dyn Error + 'static), now: Timestamp) {
        let is_due = {
            let mut last = self
                .lost_holds
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let is_due = last.is_none_or(|last| now.since(last) >= REPEAT);
            if is_due {
                *last = Some(now);
            }
            is_due
        };
        if is_due {
            tracing::warn!(target: "tower_quota", "{error}");
        }
    }

    fn warning(
        &self,
        error: &(dyn Error + 'static),
        call: FailedCall,
        now: Timestamp,
    ) -> Option<String> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = outage.is_none();
        let outage = outage.get_or_insert_with(|| Outage::new(now));
        self.is_failing.store(true, Ordering::Relaxed);
        match call {
            FailedCall::Decision { is_uncounted } => {
                outage.failed += 1;
                outage.uncounted += u64::from(is_uncounted);
            }
            FailedCall::Settlement => outage.unsettled += 1,
        }
        outage.last_failure = now;
        let pause = LOOK.min(now.since(outage.began) / 2);
        if now.since(outage.last_look) < pause {
            return None;
        }
        outage.last_look = now;
        if now.since(outage.last_warning) >= REPEAT {
            outage.texts.clear();
        }
        let text = error.to_string();
        if outage.texts.len() >= MOST_TEXTS || outage.texts.contains(&text) {
            return None;
        }
        let warning = match call {
            FailedCall::Decision { .. } if is_first => format!(
                "the store of the rate limits fails, and limits do what `on_store_failure` says: {text}"
            ),
            FailedCall::Settlement if is_first => format!(
                "the store of the rate limits fails to settle, release or renew the units of requests: {text}"
            ),
            _ => format!(
                "the store of the rate limits has failed {}: {text}",
                outage.counts(now),
            ),
        };
        outage.last_warning = now;
        outage.texts.push(text);
        Some(warning)
    }

    fn answered(&self, now: Timestamp) {
        let over = {
            let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
            let is_over = |outage: &mut Outage| now.since(outage.last_failure) >= CALM;
            let over = outage.take_if(is_over);
            self.is_failing.store(outage.is_some(), Ordering::Relaxed);
            over
        };
        if let Some(over) = over {
            tracing::info!(
                target: "tower_quota",
                "the store of the rate limits answers again. It failed {}",
                over.counts(over.last_failure),
            );
        }
    }
}

impl Observer for OutageLog {
    fn observe(&self, event: &Event<'_>, rules: &Rules) {
        let now = || rules.settings.local.now();
        match event {
            Event::Failed(StoreFailure {
                kind,
                error,
                choice,
                ..
            }) => match (kind, choice) {
                (StoreFailureKind::LostHold, _) => self.lost_hold(*error, now()),
                (StoreFailureKind::Settle, _) => {
                    self.failed(*error, FailedCall::Settlement, now());
                }
                (_, Some(choice)) => {
                    self.lock_recent().add(*choice, *error, now());
                    let is_uncounted = *choice == OnStoreFailure::Allow;
                    self.failed(*error, FailedCall::Decision { is_uncounted }, now());
                }
                // The store can never decide this request, so this is no outage.
                (_, None) => {}
            },
            Event::Answered { .. } if self.is_failing.load(Ordering::Relaxed) => {
                self.answered(now());
            }
            _ => {}
        }
    }

    fn sees_answers(&self) -> bool {
        true
    }
}

impl Outage {
    const fn new(now: Timestamp) -> Self {
        Self {
            began: now,
            last_failure: now,
            last_look: now,
            last_warning: now,
            texts: Vec::new(),
            failed: 0,
            uncounted: 0,
            unsettled: 0,
        }
    }

    fn counts(&self, now: Timestamp) -> String {
        let time = now.since(self.began);
        let requests = format!(
            "{} requests in {time:.0?}, of which {} passed uncounted",
            self.failed, self.uncounted,
        );
        match (self.failed, self.unsettled) {
            (_, 0) => requests,
            (0, unsettled) => format!("{unsettled} {ATTEMPTS} in {time:.0?}"),
            (_, unsettled) => format!("{requests}, and {unsettled} {ATTEMPTS}"),
        }
    }
}
